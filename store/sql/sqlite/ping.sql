-- The file's host clock, Unix milliseconds.
SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)
