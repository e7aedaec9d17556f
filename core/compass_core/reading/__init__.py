"""Reading what comes from outside: limits, names, JSON, arrays and syntax trees are checked before they are used."""
