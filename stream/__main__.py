"""``python -m stream``: the command ``tracecomb``, where its script is not on the path."""

from stream.ownership import main

if __name__ == "__main__":
    main()
