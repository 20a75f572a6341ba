"""Run Tarazu as `python -m tarazu`."""

from tarazu.cli import main

if __name__ == "__main__":
    main()
