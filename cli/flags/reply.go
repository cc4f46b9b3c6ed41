package flags

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

// ReplyFlags say what is done with the reply.
type ReplyFlags struct {
	Output     *string `short:"o" group:"Reply" placeholder:"FILE" help:"Write the body to a file, whole or not at all. What a cut download has got is not asked for again."`
	RemoteName bool    `short:"O" group:"Reply" help:"Write it to a file of this directory, with the name that the URL ends with."`
	Include    bool    `short:"i" group:"Reply" help:"Show the header, too."`
	Fail       bool    `short:"f" group:"Reply" help:"Do not show the body of an error. It is exit status 22 in any case."`
	WriteOut   string  `short:"w" group:"Reply" placeholder:"FORMAT" help:"Write this when all is over: text, \\n, \\t, %{http_code}, %{time_total} and others of curl, %{json} for all; @FILE is read."`
	Silent     bool    `short:"s" group:"Reply" help:"No progress bar; failures are told all the same, unless -q is given."`
	ShowError  bool    `short:"S" hidden:""`
	Capture    string  `enum:"none,errors,all" default:"errors" group:"Reply" placeholder:"none|errors|all" help:"Of which replies the journal keeps the end: 8 KiB. Default errors."`
}

func (f *ReplyFlags) set(r *request.Request) (err error) {
	r.Include, r.HideFail = r.Include || f.Include, f.Fail
	output := OrEmpty(f.Output)
	if r.WriteOut, err = readFormat(f.WriteOut); err != nil {
		return err
	}
	switch {
	case f.RemoteName && f.Output != nil:
		return errors.New("-o and -O both name the file\nhint: give one of them")
	case f.RemoteName:
		if output, err = remoteName(r.URL); err == nil {
			r.Output, err = absolute(output)
		}
	case f.Output != nil && output == "": // probably a variable that is not set, and stdout is not meant
		return errors.New("-o names no file\nhint: leave it out for stdout")
	case output != "-":
		r.Output, err = absolute(output)
	}
	if strings.HasSuffix(output, "/") && r.Output != "/" {
		r.Output += "/" // filepath.Abs drops it; it says that the name is a directory
	}
	if err == nil && r.Output != "" {
		err = httpexec.CheckOutput(r.Output)
	}
	return err
}

// CaptureMode returns the mode of a command that captures the same: replies with an error are kept like stderr.
func (f *ReplyFlags) CaptureMode() task.CaptureMode {
	return map[string]task.CaptureMode{"errors": task.CaptureStderr, "all": task.CaptureBoth}[f.Capture]
}

// remoteName returns the last part of a URL's path, as it stands there.
func remoteName(url string) (string, error) {
	url, _, _ = strings.Cut(url, "#")
	url, _, _ = strings.Cut(url, "?")
	_, rest, found := strings.Cut(url, "://")
	if !found {
		rest = url
	}
	_, path, _ := strings.Cut(rest, "/")
	name := path[strings.LastIndexByte(path, '/')+1:]
	if name == "" || name == "." || name == ".." || request.HasReference(name) || name != filepath.Base(name) {
		return "", errors.New("-O: the URL ends with no name of a file\nhint: -o FILE names it")
	}
	return name, nil
}

// readFormat returns the value of -w, which may stand in a file.
func readFormat(format string) (string, error) {
	name, isFile := strings.CutPrefix(format, "@")
	if !isFile {
		return format, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("-w: %w", err)
	}
	return string(text), nil
}
