"""What every other package may use and that imports none of them."""
