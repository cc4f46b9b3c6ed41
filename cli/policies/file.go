package policies

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// File is a config file. It holds [policy.NAME] tables and those of settings, and nothing else.
type File struct {
	Path     string
	settings map[string]map[string][]string // values of flags by their names, by the name of their table
	policies map[string]map[string]any      // settings by the name of the policy
	mistakes []*Mistake                     // but for the values of the policies
	notTOML  bool                           // then there are no policies
	data     []byte
	lines    map[string]int // of the keys, joined by NUL; nil until one is asked for
}

const (
	policyTable = "policy"
	ruleKey     = "rule"
)

// maxFileSize is the size in bytes beyond which a file is no config file.
const maxFileSize = 256 << 10

// ErrAbsent says that there is no config file.
var ErrAbsent = errors.New("there is no such file")

// Load reads the config file of a run; nil where there is none. A default file that cannot be read, as under sudo in
// somebody else's home, is a warning, so that it does not keep commands from running. Mistakes in the file are kept:
// see Choice.Begin and Warn.
func Load(flag *flags.ConfigFlag, getenv func(string) string, warn func(error)) (*File, error) {
	path, named := flag.Path(getenv)
	switch {
	case path == "" && named:
		return nil, errors.New("--config is empty" +
			"\nhint: a variable that is not set? --config /dev/null is no config file at all")
	case path == "":
		return nil, nil
	}
	file, _, err := Read(path)
	switch {
	case errors.Is(err, ErrAbsent) && !named:
		return nil, nil
	case errors.Is(err, ErrAbsent):
		return nil, text.WithHint(err, "retry policy show --config /dev/null >"+render.Command([]string{path})+" makes one")
	case errors.Is(err, fs.ErrPermission) && !named:
		warn(fmt.Errorf("going on without a config file: %w", err))
		return nil, nil
	}
	return file, err
}

// Warn tells of the first mistake outside of a policy, "" for none: one typo must not stop every job of a machine. The
// values of every policy are read for that.
func (f *File) Warn(policy string, warn func(error)) {
	if f == nil {
		return
	}
	own := f.mistakesIn(policy)
	others := slices.DeleteFunc(f.Check(slices.Clone(f.mistakes)), func(m *Mistake) bool {
		return slices.Contains(own, m) || policy != "" && m.policy == policy
	})
	switch n := len(others); {
	case n == 1:
		warn(others[0])
	case n > 1:
		warn(fmt.Errorf("the config file has %d mistakes, which retry policy check lists; the first: %w", n, others[0]))
	}
}

// mistakesIn returns the mistakes in a policy. A file that is no TOML may have the policy if it has the name; what a
// run without -p uses is the built-in default then.
func (f *File) mistakesIn(policy string) []*Mistake {
	if f.notTOML && policy != "" && policy != task.DefaultPolicyName && bytes.Contains(f.data, []byte(policy)) {
		return f.mistakes
	}
	return slices.DeleteFunc(slices.Clone(f.mistakes), func(m *Mistake) bool { return m.policy != policy || policy == "" })
}

// Read reads a config file. The mistakes are those of the whole file but for the values of the policies.
func Read(path string) (*File, []*Mistake, error) {
	// With O_NONBLOCK, opening a pipe does not wait for a writer: it is refused below, as it is no regular file.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil, fmt.Errorf("read the config file %s: %w", path, ErrAbsent)
	}
	if err != nil {
		return nil, nil, unreadable(path, err, "make it readable for the user who runs retry")
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, nil, unreadable(path, err, "check the disk that it is on")
	case info.IsDir():
		return nil, nil, unreadable(path, errors.New("it is a directory"), "name the file in it")
	case !info.Mode().IsRegular() && path != os.DevNull:
		return nil, nil, unreadable(path, errors.New("it is not a regular file"), "copy what it yields to a file")
	}
	return ReadFrom(path, file)
}

// ReadFrom reads a config file to the end of a reader, which may be a pipe. The mistakes name it path.
func ReadFrom(path string, from io.Reader) (*File, []*Mistake, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxFileSize+1))
	switch {
	case err != nil:
		return nil, nil, unreadable(path, err, "check the disk that it is on")
	case len(data) > maxFileSize:
		err := fmt.Errorf("it is larger than %d KiB", maxFileSize>>10)
		return nil, nil, unreadable(path, err, "that is no config file: is it the right one?")
	}
	file, mistakes := parse(path, data)
	return file, mistakes, nil
}

func unreadable(path string, err error, hint string) error {
	if reason, ok := errors.AsType[*fs.PathError](err); ok {
		err = reason.Err // the path is in the message already
	}
	return text.WithHint(fmt.Errorf("read the config file %s: %w", path, err), hint)
}

// Names returns the names of the file's policies; none where there is no file.
func (f *File) Names() []string {
	if f == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(f.policies))
}

// Has reports whether the file has a policy of the name.
func (f *File) Has(name string) bool { return f != nil && f.policies[name] != nil }

// Check adds the mistakes in the values of all policies to those that reading the file has found.
func (f *File) Check(mistakes []*Mistake) []*Mistake {
	all := &reader{file: f, mistakes: mistakes}
	for _, name := range f.Names() {
		_, wrong := f.Policy(name)
		all.mistakes = append(all.mistakes, wrong...)
	}
	return all.sorted()
}

// root finds unknown tables and keys in the whole file. The values of a policy are read when it is used. The file is
// decoded into maps since, for a struct, go-toml ignores the case of keys and stops at the first value of a wrong type.
func (r *reader) root(root map[string]any) {
	for key, value := range root {
		table, isTable := value.(map[string]any)
		switch {
		case key != policyTable && !isSettingTable(key):
			what := "key"
			if isTable {
				what = "table"
			}
			r.mistake(fmt.Errorf("unknown %s\nhint: %s", what, unknownTableHint(key)), key)
		case !isTable && key != policyTable:
			r.mistake(notTable(value, "the flags of this table begin with ["+key+"]"), key)
		case !isTable:
			r.mistake(notTable(value, "a policy begins with [policy.NAME]"), key)
		case key != policyTable:
			r.settingValues(key, table)
		default:
			for name, policy := range table {
				r.table = []string{policyTable}
				r.policy(name, policy)
			}
			r.table = nil
		}
	}
}

func unknownTableHint(key string) string {
	if text.Nearest(key, []string{policyTable}) != "" {
		return "did you mean [policy.NAME]?"
	}
	var tables []string
	for _, t := range settingTables {
		if slices.Contains(settingNames(t.name), key) {
			return "put it below [" + t.name + "]"
		}
		tables = append(tables, t.name)
	}
	return hintFor(key, tables, "did you mean [%s]?",
		"the file holds [policy.NAME] tables, [defaults], [worker] and [serve], and nothing else")
}

// notTable is the error for a value where a table belongs.
func notTable(value any, hint string) error {
	return fmt.Errorf("%s where a table belongs\nhint: %s", kindOfValue(value), hint)
}

// policy finds unknown keys in a policy.
func (r *reader) policy(name string, value any) {
	settings, isTable := value.(map[string]any)
	switch {
	case !isTable && (keyNamed(name) != nil || name == ruleKey):
		const hint = "\nhint: put it below [policy.NAME]; [policy.default] is what a run without -p uses"
		r.mistake(errors.New("it belongs to no policy"+hint), name)
		return
	case !isTable:
		r.mistake(notTable(value, "a policy begins with ["+dottedKey(policyTable, name)+"]"), name)
		return
	}
	r.file.policies[name] = settings
	if err := CheckName(name); err != nil {
		r.mistake(err, name)
	}
	r.table = []string{policyTable, name}
	for key, value := range settings {
		if key == ruleKey {
			r.ruleTables(value)
		} else if keyNamed(key) == nil {
			r.mistake(fmt.Errorf("unknown key\nhint: %s", unknownKeyHint(key)), key)
		}
	}
}

func unknownKeyHint(key string) string {
	if hint := Elsewhere(key); hint != "" {
		return hint
	}
	known := append(names(fileKeys()), ruleKey)
	return hintFor(key, known, "did you mean %s?",
		"the keys of a policy are "+strings.Join(known[:len(known)-1], ", ")+" and rule")
}

// ruleTables finds unknown keys in the rules of a policy.
func (r *reader) ruleTables(value any) {
	hint := "a rule begins with [[" + dottedKey(append(r.table, ruleKey)...) + "]]"
	rules, isList := value.([]any)
	if !isList {
		r.mistake(fmt.Errorf("%s where a list of tables belongs\nhint: %s", kindOfValue(value), hint), ruleKey)
	}
	for i, item := range rules {
		rule, isTable := item.(map[string]any)
		if !isTable {
			r.mistake(notTable(item, hint), ruleKey)
		}
		known := names(ruleKeys())
		for key := range rule {
			if !slices.Contains(known, key) {
				hint := hintFor(key, known, "did you mean %s?", "a rule has when, backoff and jitter")
				r.mistake(fmt.Errorf("unknown key of a rule\nhint: %s", hint), ruleKey, strconv.Itoa(i), key)
			}
		}
	}
}
