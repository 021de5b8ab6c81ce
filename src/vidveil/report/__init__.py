"""From results.json to what people read: Markdown tables and the picture of the trade-off.

Everything is made from results alone: whoever has the file can make the page again.
"""
