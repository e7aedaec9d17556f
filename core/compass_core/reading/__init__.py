"""Reading what comes from outside: limits, names, JSON, YAML, arrays and syntax trees are checked before they are used."""
