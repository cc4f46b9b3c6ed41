package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/config"
)

// configFlag says where the config file is.
type configFlag struct {
	Config *string
}

// place returns the path of the config file, and whether somebody named it. Neither a relative XDG_CONFIG_HOME nor the current
// directory leads to one: what a checkout brings along is not to change how commands are run.
func (f *configFlag) place(getenv func(string) string) (path string, named bool) {
	if f.Config != nil {
		return *f.Config, true
	}
	if path := getenv("RETRY_CONFIG"); path != "" {
		return path, true
	}
	for _, home := range []struct{ variable, below string }{{"XDG_CONFIG_HOME", ""}, {"HOME", ".config"}, {"APPDATA", ""}} {
		if dir := getenv(home.variable); filepath.IsAbs(dir) {
			return filepath.Join(dir, home.below, "retry", "config.toml"), false
		}
	}
	return "", false
}

// load reads the config file; nil where there is none. The default one must not keep commands from running where it lies in somebody
// else's home, as under sudo: a warning says so.
func (f *configFlag) load(getenv func(string) string, warn func(error)) (*policyFile, error) {
	path, named := f.place(getenv)
	switch {
	case path == "" && named:
		return nil, errors.New("--config is empty\nhint: a variable that is not set? --config /dev/null is no config file at all")
	case path == "":
		return nil, nil
	}
	file, err := config.Read(path)
	switch {
	case errors.Is(err, config.ErrAbsent) && !named:
		return nil, nil
	case errors.Is(err, config.ErrAbsent):
		return nil, withHint(err, "retry policy show --config /dev/null >"+render.Command([]string{path})+" makes one")
	case errors.Is(err, fs.ErrPermission) && !named:
		warn(fmt.Errorf("going on without a config file: %w", err))
		return nil, nil
	case file == nil:
		return nil, err
	}
	result := &policyFile{File: file}
	return result, firstOfMany(path, append(config.Mistakes(err), result.structure()...))
}

// mostMistakes is how many a run says: a file that is no config file at all is not to fill a mail.
const mostMistakes = 10

func firstOfMany(path string, mistakes []*config.Error) error {
	all := joined(mistakes) // which sorts them
	if len(mistakes) <= mostMistakes {
		return all
	}
	return fmt.Errorf("%w\n… and %d more\nhint: retry policy check %s says all of them",
		joined(mistakes[:mostMistakes]), len(mistakes)-mostMistakes, render.Command([]string{path}))
}
