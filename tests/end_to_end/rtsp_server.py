"""A camera on the loopback interface, played by GStreamer's RTSP server.

    /usr/bin/python3 rtsp_server.py PORT UNITS      rtsp://127.0.0.1:PORT/door, until killed
    /usr/bin/python3 rtsp_server.py                 exit code 0 if everything that it needs is installed

Run by the system's Python, which has GStreamer's bindings. UNITS holds H.264 access units, each behind its length in
four bytes: parameter sets first, then pictures, shown 25 times a second for ever. Like a camera, it shows whatever is
due when somebody joins, key picture or not. It says `playing` when somebody does.
"""

import struct
import sys
import time
from pathlib import Path

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

RATE = 25
PIPELINE = (
    "( appsrc name=camera is-live=true do-timestamp=true format=time"
    " caps=video/x-h264,stream-format=byte-stream,alignment=au ! rtph264pay name=pay0 pt=96 )"
)


def read_units(path):
    data, at = Path(path).read_bytes(), 0
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def serve(port, path):
    parameters, *pictures = read_units(path)
    began = time.monotonic()

    def due():
        return int((time.monotonic() - began) * RATE)

    def feed(_, media):
        source = media.get_element().get_child_by_name("camera")
        source.emit("push-buffer", Gst.Buffer.new_wrapped(parameters))
        shown = due()

        def show():
            nonlocal shown
            while shown < due():
                shown += 1
                unit = pictures[shown % len(pictures)]
                source.emit("push-buffer", Gst.Buffer.new_wrapped(unit))
            return True

        GLib.timeout_add(10, show)
        print("playing", flush=True)

    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(PIPELINE)
    factory.set_shared(True)
    factory.connect("media-configure", feed)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(port)
    server.get_mount_points().add_factory("/door", factory)
    if not server.attach(None):
        sys.exit(f"port {port} is taken")
    print("listening", flush=True)
    GLib.MainLoop().run()


Gst.init(None)
missing = [name for name in ("appsrc", "rtph264pay", "rtpbin") if Gst.ElementFactory.find(name) is None]
if missing:
    sys.exit(f"GStreamer lacks {', '.join(missing)}")
if len(sys.argv) > 1:
    serve(*sys.argv[1:])
