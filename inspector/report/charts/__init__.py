"""What a file takes, as charts: bars, a treemap, a forecast."""
