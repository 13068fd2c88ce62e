"""The explorer page: one file of HTML that shows and edits what a search found."""
