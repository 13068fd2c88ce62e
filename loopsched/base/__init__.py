"""What everything else stands on; nothing here knows of problems, machines or nests."""
