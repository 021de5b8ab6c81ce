"""How pictures tell runs apart: colours of Okabe and Ito, which colour-blind people can distinguish, and markers."""

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C510A", "#7F7F7F"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
GREY = "#6b6b6b"
