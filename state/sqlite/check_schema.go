package sqlite

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// schema compares what the database is made of with a fresh one. It reports whether its tables can be asked.
func (e *examiner) schema(j *Journal) bool {
	fresh, err := OpenEmpty()
	if err != nil {
		e.fail("schema", err)
		return false
	}
	defer func() { _ = fresh.Close() }()
	want, err := objects(e.ctx, fresh)
	if err != nil {
		e.fail("schema", err)
		return false
	}
	got, err := objects(e.ctx, j)
	if err != nil {
		e.fail("schema", j.diagnose(err))
		return false
	}
	e.strange(got, want)
	return e.complete(got, want)
}

// complete looks for what is missing, or is not as it was made.
func (e *examiner) complete(got, want map[object]string) bool {
	var wrong []string
	for _, o := range sorted(want) {
		switch statement, there := got[o]; {
		case !there:
			wrong = append(wrong, "the "+o.String()+" is missing")
		case statement != want[o]:
			wrong = append(wrong, "the "+o.String()+" is not as retry makes it")
		}
	}
	if len(wrong) > 0 {
		e.add("schema", LevelProblem, e.moving(), "%s", strings.Join(wrong, ", "))
	}
	return len(wrong) == 0
}

// strange looks for what is not ours. A trigger or an index can refuse a write, or change it; a table or a view does nothing.
func (e *examiner) strange(got, want map[object]string) {
	for _, o := range sorted(got) {
		if _, ours := want[o]; ours {
			continue
		}
		level := LevelWarning
		if o.kind == "trigger" || o.kind == "index" {
			level = LevelProblem
		}
		statement := "DROP " + strings.ToUpper(o.kind) + ` "` + strings.ReplaceAll(o.name, `"`, `""`) + `"`
		e.add("schema", level, fmt.Sprintf("sqlite3 %s '%s'", filepath.Join(e.dir, databaseName), strings.ReplaceAll(statement, "'", `'\''`)),
			"the %s is not retry's", o)
	}
}

// object is a table, an index, a trigger or a view.
type object struct{ kind, name string }

func (o object) String() string { return o.kind + " " + o.name }

func sorted(objects map[object]string) []object {
	return slices.SortedFunc(maps.Keys(objects), func(a, b object) int { return strings.Compare(a.String(), b.String()) })
}

// objects returns the statement of each thing in the database, SQLite's own left out.
func objects(ctx context.Context, j *Journal) (map[object]string, error) {
	found := map[object]string{}
	const query = `SELECT type, name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'`
	_, err := collect(ctx, j, query, nil, func(scan scanner) (o object, err error) {
		var statement string
		err = scan(&o.kind, &o.name, &statement)
		found[o] = statement
		return o, err
	})
	return found, err
}
