package policies

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/config"
	"github.com/10f93571/retry/internal/text"
)

// policyFile is a config file, whose tables are policies.
type File struct{ *config.File }

const (
	policyTable = "policy"
	ruleKey     = "rule"
)

// ruleKeys are the keys of a rule.
var ruleKeys = []string{"when", "backoff", "jitter"}

// Joined returns mistakes in the order of the file; nil where there are none.
func Joined(mistakes []*config.Error) error {
	slices.SortStableFunc(mistakes, func(a, b *config.Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	all := make([]error, len(mistakes))
	for i, m := range mistakes {
		all[i] = m
	}
	return errors.Join(all...)
}

// entries are the policies in the order of the file.
func (f *File) entries() []config.Entry {
	if f == nil {
		return nil
	}
	if policies := f.Root.Get(policyTable); policies != nil && policies.Value.Kind == config.Tables {
		return policies.Value.Table.Entries
	}
	return nil
}

// Entry returns the policy of a name; nil where there is none.
func (f *File) Entry(name string) *config.Entry {
	entries := f.entries()
	if i := slices.IndexFunc(entries, func(e config.Entry) bool { return e.Key == name }); i >= 0 {
		return &entries[i]
	}
	return nil
}

// Structure finds tables and keys that no policy has, in the whole file: a misspelt one must not be passed over in silence. Of their
// values it asks only whether a table is one.
func (f *File) Structure() (mistakes []*config.Error) {
	for _, e := range f.Root.Entries {
		switch {
		case e.Key != policyTable:
			hint := hintFor(e.Key, []string{policyTable}, "did you mean [%s.NAME]?", "the file holds [policy.NAME] tables, and nothing else")
			mistakes = append(mistakes, f.Errorf(e.Offset, config.Key(e.Key), "unknown %s\nhint: %s", tableOrKey(e), hint))
		case e.Value.Kind != config.Tables:
			mistakes = append(mistakes,
				f.Errorf(e.Offset, policyTable, "%s where a table belongs\nhint: a policy begins with [policy.NAME]", e.Value.Kind))
		default:
			for _, policy := range e.Value.Table.Entries {
				mistakes = append(mistakes, f.policyStructure(policy)...)
			}
		}
	}
	return mistakes
}

func tableOrKey(e config.Entry) string {
	if e.Value.Kind == config.Tables {
		return "table"
	}
	return "key"
}

func (f *File) policyStructure(e config.Entry) (mistakes []*config.Error) {
	path := config.Key(policyTable, e.Key)
	switch {
	case e.Value.Kind != config.Tables && (keyNamed(e.Key) != nil || e.Key == ruleKey):
		const hint = "\nhint: put it below [policy.NAME]; [policy.default] is what a run without -p uses"
		return []*config.Error{f.Errorf(e.Offset, path, "it belongs to no policy"+hint)}
	case e.Value.Kind != config.Tables:
		return []*config.Error{f.Errorf(e.Offset, path, "%s where a table belongs\nhint: a policy begins with [%s]", e.Value.Kind, path)}
	}
	if err := CheckName(e.Key); err != nil {
		mistakes = append(mistakes, f.Errorf(e.Offset, path, "%w", err))
	}
	for _, setting := range e.Value.Table.Entries {
		whole := config.Key(policyTable, e.Key, setting.Key)
		switch {
		case setting.Key == ruleKey:
			mistakes = append(mistakes, f.ruleStructure(setting, whole)...)
		case keyNamed(setting.Key) == nil:
			mistakes = append(mistakes, f.Errorf(setting.Offset, whole, "unknown key\nhint: %s", unknownKeyHint(setting.Key)))
		}
	}
	return mistakes
}

func unknownKeyHint(key string) string {
	if hint := Elsewhere(key); hint != "" {
		return hint
	}
	known := []string{ruleKey}
	for _, k := range fileKeys() {
		known = append(known, k.Name)
	}
	return hintFor(key, known, "did you mean %s?", "the keys of a policy are "+strings.Join(known[1:], ", ")+" and rule")
}

func (f *File) ruleStructure(e config.Entry, path string) (mistakes []*config.Error) {
	if e.Value.Kind != config.List {
		return []*config.Error{f.Errorf(e.Offset, path, "%s where a list of tables belongs\nhint: a rule begins with [[%s]]", e.Value.Kind, path)}
	}
	for _, rule := range e.Value.Items {
		if rule.Kind != config.Tables {
			mistakes = append(mistakes, f.Errorf(rule.Offset, path, "%s where a table belongs\nhint: a rule begins with [[%s]]", rule.Kind, path))
			continue
		}
		for _, setting := range rule.Table.Entries {
			if !slices.Contains(ruleKeys, setting.Key) {
				mistakes = append(mistakes, f.Errorf(setting.Offset, path+"."+config.Key(setting.Key), "unknown key of a rule\nhint: %s",
					hintFor(setting.Key, ruleKeys, "did you mean %s?", "a rule has when, backoff and jitter")))
			}
		}
	}
	return mistakes
}

// Check reads the whole file, all values too.
func (f *File) Check(mistakes []*config.Error) ([]*config.Error, int) {
	mistakes = append(mistakes, f.Structure()...)
	entries := f.entries()
	for i := range entries {
		if entries[i].Value.Kind == config.Tables {
			_, wrong := f.Policy(&entries[i])
			mistakes = append(mistakes, wrong...)
		}
	}
	return oncePerPlace(config.Mistakes(Joined(mistakes))), len(entries)
}

// oncePerPlace leaves out what TOML says of a place of which a key says more.
func oncePerPlace(mistakes []*config.Error) []*config.Error {
	keyed := map[config.Position]bool{}
	for _, m := range mistakes {
		keyed[m.Position] = keyed[m.Position] || m.Key != ""
	}
	return slices.DeleteFunc(mistakes, func(m *config.Error) bool { return m.Key == "" && keyed[m.Position] })
}

// loadPolicyFile reads the config file; nil where there is none. The default one must not keep commands from running where it lies in somebody
// else's home, as under sudo: a warning says so.
func Load(flag *flags.ConfigFlag, getenv func(string) string, warn func(error)) (*File, error) {
	path, named := flag.Path(getenv)
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
		return nil, text.WithHint(err, "retry policy show --config /dev/null >"+render.Command([]string{path})+" makes one")
	case errors.Is(err, fs.ErrPermission) && !named:
		warn(fmt.Errorf("going on without a config file: %w", err))
		return nil, nil
	case file == nil:
		return nil, err
	}
	result := &File{File: file}
	return result, firstOfMany(path, append(config.Mistakes(err), result.Structure()...))
}

// mostMistakes is how many a run says: a file that is no config file at all is not to fill a mail.
const mostMistakes = 10

func firstOfMany(path string, mistakes []*config.Error) error {
	all := Joined(mistakes) // which sorts them
	if len(mistakes) <= mostMistakes {
		return all
	}
	return fmt.Errorf("%w\n… and %d more\nhint: retry policy check %s says all of them",
		Joined(mistakes[:mostMistakes]), len(mistakes)-mostMistakes, render.Command([]string{path}))
}
