"""Tables and texts that several layers share."""
