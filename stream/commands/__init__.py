"""The subcommands of ``tracecomb``, a few a module."""
