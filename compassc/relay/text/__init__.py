"""The text form of Relay: literals and metadata, which the printer uses (`compassc.relay.printer`), and the way back: tokens
(`lexer`, `cursor`), types and patterns (`type_reader`), expressions (`reader`), modules (`program`)."""
