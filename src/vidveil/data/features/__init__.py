"""Features of videos: made once by a frozen encoder, kept, read by everything that learns on them."""
