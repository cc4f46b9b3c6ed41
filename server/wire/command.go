package wire

import (
	"strings"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/task"
)

// command reads a task that runs a command.
func (d *Decoder) command(o *problem.Object, t *task.Task, h Header, sum *payload) {
	t.Kind, t.Command = task.KindCommand, o.Strings("command")
	t.Options.Stdin = task.StdinNull
	t.Directory = o.String("directory", d.Directory)
	sum.add("command", append(t.Command, t.Directory)...)
	length := 0
	for _, word := range t.Command {
		if length += len(word); strings.ContainsRune(word, 0) {
			o.Failf("command", "a word of it holds a NUL")
		}
	}
	switch {
	case !h.Exec:
		o.Failf("command", "commands are not accepted here"+
			"\nhint: the server needs --allow-exec, and the client a token of scope admin")
	case o.Raw("command")[0] != '[': // which is told already
	case len(t.Command) == 0 || t.Command[0] == "":
		o.Failf("command", "the command is empty")
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
