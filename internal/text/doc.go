// Package text holds what several packages do with text that people write or read: durations, numbers, the nearest
// known word to a mistyped one, and escapes for what a terminal must not interpret.
package text
