"""Names of tags that manifests may contain: those that formats, players and cameras define.

A tag may have any name (`Patient Jane=1`), which a manifest would keep. So only names in these lists are written,
in any case; all others are counted.
"""

from collections.abc import Iterable

# FFmpeg's own names, to which its demuxers translate those of most formats.
_GENERIC = """
album album_artist artist comment composer copyright creation_time date disc encoder encoded_by filename genre
language performer publisher service_name service_provider title track variant_bitrate lyrics description synopsis
show season_number episode_id episode_sort network grouping compilation media_type hd_video gapless_playback
purchase_date account_type rating keywords location location-eng author director producer sort_name sort_artist
sort_album sort_album_artist sort_composer sort_show timecode rotate major_brand minor_version compatible_brands
year tracktotal disctotal tracknumber discnumber replaygain_track_gain replaygain_track_peak replaygain_album_gain
replaygain_album_peak r128_track_gain r128_album_gain software source original_format original_source organization
contact license isrc conductor mood version
"""

# MP4 and QuickTime: names of handlers and user data, iTunes, XMP.
_MP4 = """
handler_name vendor_id encoder timecode reel_name alternate_group make model original_artist podcast category
edit_date chapter disclaimer playback_requirements warning host_computer information performers writer lyricist
director_of_photography subject cast studio encoding_tool work movement movement_count movement_number show_movement
tmpo tempo bpm explicit content_rating xmp product_version firmware camera_id software_version hw_version loci umid
track_name itunnorm itunsmpb itunextc itunmovi itunes_cddb_1 itunes_cddb_ids itunpgap contentid artistid genreid
composerid playlistid catalogid
"""

_APPLE = """
album artist author camera.identifier camera.framereadouttimeinmicroseconds camera.lens_model
camera.focal_length.35mm_equivalent collection.user comment content.identifier copyright creationdate description
director displayname encoder genre full-frame-rate-playback-intent information is-montage keywords live-photo.auto
live-photo.still-image-transform live-photo.still-image-transform-reference-dimensions live-photo.vitality-score
live-photo.vitality-scoring-version live-photo-info location.accuracy.horizontal location.iso6709 location.name
location.body location.date location.note location.role make model music.genre originatingsignature producer
publisher rating.user software still-image-time title track year detected-face direction.facing direction.motion
video-orientation video-map-gravity location.accuracy.vertical cinematic-video.info
spatial-overcapture.quality-score spatial-overcapture.quality-scoring-version spatial-overcapture.identifier
player.version player.movie.visual.brightness player.movie.visual.color player.movie.visual.contrast
player.movie.visual.tint player.movie.audio.gain player.movie.audio.treble player.movie.audio.bass
player.movie.audio.balance player.movie.audio.mute player.movie.audio.pitchshift proapps.cameraname proapps.clipid
proapps.shottype proapps.reel proapps.scene proapps.shot proapps.take proapps.angle proapps.goodtake
proapps.manufacturer proapps.serialno proapps.cameraid proapps.cliplabel
"""
_APPLE_PREFIXES = ("com.apple.quicktime.", "com.apple.")

_MAKERS = """
com.android.version com.android.manufacturer com.android.model com.android.capture.fps com.android.model.name
com.android.video.temporal_layers_count com.android.build com.android.utc_offset com.samsung.android.utc_offset
com.samsung.android.version com.samsung.android.model com.samsung.android.apex com.xiaomi.capture_mode
com.xiaomi.hdr10 com.xiaomi.record_mcvideo com.xiaomi.preview_video_cover com.oplus.version com.google.photos
com.gopro.model com.apple.finalcutstudio.media.uuid com.apple.finalcutstudio.media.history.uuid
com.panasonic.semi-pro.metadata.xml com.arri.camera.cameraserialnumber com.arri.camera.cameramodel
"""

# https://www.matroska.org/technical/tagging.html, and what mkvmerge writes of each track.
_MATROSKA = """
original sample country total_parts part_number part_offset subtitle url instruments email address fax phone
accompaniment arranger lead_performer sound_engineer assistant_director cinematography production_designer
costume_designer actor character written_by screenplay_by edited_by coproducer executive_producer distributed_by
mastered_by remixed_by production_studio thanks_to content_type initial_key law_rating date_released date_recorded
date_encoded date_tagged date_digitized date_written date_purchased recording_location composition_location
composer_nationality play_counter encoder_settings bps fps measure tuning replaygain_gain replaygain_peak mcdi isbn
barcode catalog_number label_code lccn imdb tmdb tvdb tvdb2 purchase_item purchase_info purchase_owner
purchase_price purchase_currency production_copyright terms_of_use duration number_of_frames number_of_bytes
_statistics_writing_app _statistics_writing_date_utc _statistics_tags source_id stereo_mode alpha_mode mimetype
handler_name encoded_date encoding_params wm/mediaclassprimaryid wm/mediaclasssecondaryid
"""

# Frames of ID3 that FFmpeg leaves as they are, and the chunks of RIFF (AVI, WAV).
_ID3_AND_RIFF = """
aenc apic comm comr encr equa etco geob grid ipls link mcdi mllt owne priv pcnt popm poss rbuf rvad rvrb sylt sytc
talb tbpm tcom tcon tcop tdat tdly tdrc tdrl tdtg tden tdor tenc text tflt time tipl tit1 tit2 tit3 tkey tlan tlen
tmcl tmed tmoo toal tofn toly tope tory town tpe1 tpe2 tpe3 tpe4 tpos tpro tpub trck trda trsn trso tsiz tsoa tsop
tsot tsrc tsse tsst tyer txxx ufid user uslt wcom wcop woaf woar woas wors wpay wpub wxxx compatible_brands
id3v2_priv.xmp id3v2_priv.com.apple.streaming.transportstreamtimestamp iarl iart icms icmt icop icrd icrp idim idpi
ieng ignr ikey ilgt ilng imed inam iplt iprd iprt isbj isft ishp isrc isrf itch ismp idit strn tape tcod tcdo vmaj
vmin originator originator_reference origination_date origination_time time_reference coding_history umid
"""

# ASF (WMV), FLV, MXF, Real, and what encoders of streams add.
_OTHERS = """
wm/albumtitle wm/albumartist wm/encodingtime wm/encodingsettings wm/genre wm/year wm/tracknumber wm/provider
wm/publisher wm/toolname wm/toolversion wm/mediaoriginalchannel wm/subtitle wm/subtitledescription wmfsdkversion
wmfsdkneeded isvbr devicecon formance_templates peakvalue averagelevel asf_protection_type duration width height
videodatarate framerate videocodecid audiodatarate audiosamplerate audiosamplesize stereo audiocodecid filesize
metadatacreator metadatadate canseektoend hasvideo hasaudio hasmetadata haskeyframes hascuepoints lasttimestamp
lastkeyframetimestamp datasize audiosize videosize audiodelay starttime totalduration uid generation_uid
company_name product_name product_version product_uid modification_date operational_pattern_ul material_package_umid
material_package_name project_name file_package_umid file_package_name reel_umid reel_name application_platform
toolkit_version track_name data_type
"""

_LANGUAGES = frozenset(
    """
afr alb amh ara arm asm aze baq bel ben bod bos bre bul bur cat ces chi cos cym cze dan deu div dut dzo ell eng epo
est eus ewe fao fas fij fil fin fra fre fry gla gle glg gre guj hat hau heb her hin hrv hun hye ibo ice ind isl ita
jav jpn kal kan kas kat kaz khm kik kin kir kor kur lao lat lav lit ltz mac mal mao mar may mkd mlg mlt mon mri msa
mul mya nep nld nno nob nor ori orm pan per pol por pus que roh ron rum run rus sag san sin slk slo slv sme smo sna
snd som sot spa sqi srp ssw sun swa swe tah tam tat tel tgk tgl tha tib tir ton tsn tso tuk tur uig ukr und urd uzb
vie vol wel wol xho yid yor zho zul zxx xxx de en es fr it ja ko nl pl pt ru sv tr zh
    """.split()
)

KNOWN = frozenset(" ".join((_GENERIC, _MP4, _MAKERS, _MATROSKA, _ID3_AND_RIFF, _OTHERS)).split()) | {
    prefix + name for prefix in _APPLE_PREFIXES for name in _APPLE.split()
}
"""In lower case."""

CODEC_TAGS = frozenset(
    """
tmcd gpmd mebx camm rtmd text tx3g c608 c708 meta mett metx stpp wvtt sbtt mp4s hint rtp fdsc sos djmd dbgi nrtm
klva id3 scte subt clcp sbtl encv enca encs enct mp4a mp4v avc1 hvc1 hev1
    """.split()
)
"""Tags of streams without a decoder: subtitles, timecodes, sensors of cameras. In lower case."""

CHAPTER = "chapter "
"""Prefix of a chapter's tags."""


def is_known(name: str) -> bool:
    """Whether this is a well-known name, or one with a language: `title-eng`. Nested ones have a slash between them."""
    plain = name.removeprefix(CHAPTER).lower()
    return _is_listed(plain) or ("/" in plain and all(map(_is_listed, plain.split("/"))))


def _is_listed(name: str) -> bool:
    base, dash, language = name.rpartition("-")
    return name in KNOWN or (bool(dash) and base in KNOWN and language in _LANGUAGES)


def known_and_others(names: Iterable[str]) -> tuple[tuple[str, ...], int]:
    """Names that may be written, in order, and how many others there are."""
    different = set(names)
    known = sorted(filter(is_known, different))
    return tuple(known), len(different) - len(known)


def codec_tag(tag: str) -> str:
    """The tag of a stream's codec if it is well-known, else nothing."""
    return tag if tag.lower() in CODEC_TAGS else ""
