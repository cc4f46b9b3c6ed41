package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/config"
)

// policyFile is a config file, whose tables are policies.
type policyFile struct{ *config.File }

const (
	policyTable = "policy"
	ruleKey     = "rule"
)

// ruleKeys are the keys of a rule.
var ruleKeys = []string{"when", "backoff", "jitter"}

// joined returns mistakes in the order of the file; nil where there are none.
func joined(mistakes []*config.Error) error {
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
func (f *policyFile) entries() []config.Entry {
	if f == nil {
		return nil
	}
	if policies := f.Root.Get(policyTable); policies != nil && policies.Value.Kind == config.Tables {
		return policies.Value.Table.Entries
	}
	return nil
}

// entry returns the policy of a name; nil where there is none.
func (f *policyFile) entry(name string) *config.Entry {
	entries := f.entries()
	if i := slices.IndexFunc(entries, func(e config.Entry) bool { return e.Key == name }); i >= 0 {
		return &entries[i]
	}
	return nil
}

// structure finds tables and keys that no policy has, in the whole file: a misspelt one must not be passed over in silence. Of their
// values it asks only whether a table is one.
func (f *policyFile) structure() (mistakes []*config.Error) {
	for _, e := range f.Root.Entries {
		switch {
		case e.Key != policyTable:
			mistakes = append(mistakes, f.Errorf(e.Offset, config.Key(e.Key), "unknown %s\nhint: %s", tableOrKey(e), hintFor(e.Key, []string{policyTable},
				"did you mean [%s.NAME]?", "the file holds [policy.NAME] tables, and nothing else")))
		case e.Value.Kind != config.Tables:
			mistakes = append(mistakes, f.Errorf(e.Offset, policyTable, "%s where a table belongs\nhint: a policy begins with [policy.NAME]", e.Value.Kind))
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

func (f *policyFile) policyStructure(e config.Entry) (mistakes []*config.Error) {
	path := config.Key(policyTable, e.Key)
	switch {
	case e.Value.Kind != config.Tables && (keyNamed(e.Key) != nil || e.Key == ruleKey):
		return []*config.Error{f.Errorf(e.Offset, path, "it belongs to no policy\nhint: put it below [policy.NAME]; [policy.default] is what a run without -p uses")}
	case e.Value.Kind != config.Tables:
		return []*config.Error{f.Errorf(e.Offset, path, "%s where a table belongs\nhint: a policy begins with [%s]", e.Value.Kind, path)}
	}
	if err := checkPolicyName(e.Key); err != nil {
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
	if hint := elsewhere[key]; hint != "" {
		return hint
	}
	known := []string{ruleKey}
	for _, k := range fileKeys() {
		known = append(known, k.name)
	}
	return hintFor(key, known, "did you mean %s?", "the keys of a policy are "+strings.Join(known[1:], ", ")+" and rule")
}

func (f *policyFile) ruleStructure(e config.Entry, path string) (mistakes []*config.Error) {
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

// hintFor names the nearest of the known words, or says what is known.
func hintFor(word string, known []string, near, otherwise string) string {
	if found := nearest(word, known); found != "" {
		return fmt.Sprintf(near, found)
	}
	return otherwise
}

// nearest returns the word that a person most likely meant; "" where none is near.
func nearest(word string, known []string) (found string) {
	word = strings.ToLower(strings.ReplaceAll(word, "_", "-"))
	least := max(len(word)/3, 1) + 1
	for _, k := range known {
		if away := backoff.Apart(word, strings.ToLower(k)); len(word) <= 2*maxTypo && away < least {
			least, found = away, k
		}
	}
	return found
}

// maxTypo bounds what is compared: nobody mistypes more.
const maxTypo = 32

// maxPolicyName is the length of a name in bytes.
const maxPolicyName = 200

// checkPolicyName refuses a name that could not be typed, shown or be a part of a path.
func checkPolicyName(name string) error {
	const hint = "\nhint: a name has letters, digits, spaces and signs but /, and 200 bytes at the most"
	switch {
	case name == "":
		return errors.New("the policy's name is empty" + hint)
	case len(name) > maxPolicyName:
		return fmt.Errorf("the policy's name has %d bytes%s", len(name), hint)
	case !utf8.ValidString(name):
		return errors.New("the policy's name is no UTF-8" + hint)
	case strings.Contains(name, "/"):
		return errors.New("the policy's name has a / in it" + hint)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the policy's name has a character that cannot be shown" + hint)
	}
	return nil
}
