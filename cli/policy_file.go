package cli

import (
	"errors"
	"slices"
	"strings"

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

func (f *policyFile) policyStructure(e config.Entry) (mistakes []*config.Error) {
	path := config.Key(policyTable, e.Key)
	switch {
	case e.Value.Kind != config.Tables && (keyNamed(e.Key) != nil || e.Key == ruleKey):
		const hint = "\nhint: put it below [policy.NAME]; [policy.default] is what a run without -p uses"
		return []*config.Error{f.Errorf(e.Offset, path, "it belongs to no policy"+hint)}
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
	if hint := elsewhere(key); hint != "" {
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
