"""From results.json to what people read: Markdown tables and the picture of the trade-off.

Drawn from results alone, never typed: whoever has the file can draw the page again.
"""
