"""Operations; see the module name."""
