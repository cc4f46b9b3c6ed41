package wire

import (
	"slices"
	"strings"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/task"
)

// command reads a task that runs a command.
func (d *Decoder) command(o *problem.Object, t *task.Task, h Header, sum *payload) {
	t.Kind, t.Command = task.KindCommand, o.Strings("command", maxCommand)
	t.Options.Stdin = task.StdinNull
	t.Directory = o.String("directory", d.Directory)
	sum.add("command", append(t.Command, t.Directory)...)
	length := 0
	for _, word := range t.Command {
		length += len(word)
	}
	switch {
	case !h.Exec:
		o.Failf("command", "commands are not accepted here"+
			"\nhint: the server needs --allow-exec, and the client a token of scope admin")
	case o.Raw("command")[0] != '[': // which is told already
	case len(t.Command) == 0 || t.Command[0] == "":
		o.Failf("command", "the command is empty")
	case slices.ContainsFunc(t.Command, func(word string) bool { return strings.ContainsRune(word, 0) }):
		o.Failf("command", "a word of it holds a NUL")
	case length > maxCommand:
		o.Failf("command", "the command has %d bytes, more than %d", length, maxCommand)
	}
	if !isAbsolute(t.Directory) { // the server's own one may have been removed
		o.Failf("directory", "want an absolute path, got %q", text.Shorten(t.Directory, 100))
	}
	for _, name := range []string{
		"targetUrl", "method", "headers", "body", "bodyBase64", "bodyJson", "bodyRef", "connectTimeoutMs", "followRedirects",
		"ambiguous", "sign",
	} {
		if o.Has(name) {
			o.Failf(name, "it is for a request, and this task runs a command")
		}
	}
}

func isAbsolute(path string) bool {
	return strings.HasPrefix(path, "/") || len(path) > 2 && path[1] == ':' // of Windows
}
