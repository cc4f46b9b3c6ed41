// Package render writes every line that a person reads about tasks: tables, details, progress, schedules; and the JSON
// that programs read. Whatever a command, a server or a journal brought along is escaped (internal/text) before it
// reaches a terminal.
package render
