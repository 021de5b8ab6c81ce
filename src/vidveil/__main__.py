"""`python -m vidveil` is the command `vidveil`."""

from vidveil.cli import main

if __name__ == "__main__":
    main()
