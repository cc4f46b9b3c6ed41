//go:build linux && cgo

package cost

import (
	"context"
	"database/sql"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// bounded are the tables that a statement may go through, each with its bound.
var bounded = map[string]string{
	"workers":       "as many as there are processes",
	"operations":    "1,000 at most",
	"policies":      "those that somebody has named",
	"targets":       "those that somebody has set",
	"json_each":     "an argument",
	"CONSTANT":      "a row of constants",
	"sqlite_master": "the tables and indexes of the schema",

	"pragma_application_id": "one value",
	"pragma_user_version":   "one value",
}

// accepted are the statements that may go through an index, or a table, each with its reason.
var accepted = []struct{ statement, reason string }{
	{`^DELETE FROM tasks WHERE false$`, "it reads no row"},
	{`^SELECT count\(\*\) FROM tasks WHERE finished_at IS NULL$`,
		"the API counts what has not ended at its first create, and once a second near --max-pending"},
	{`WHERE true AND t\.status IN \([?, ]+\) AND t\.finished_at (IS NULL|> 0) ORDER BY t\.number DESC LIMIT \?$`,
		"retry status reads the newest of an index, and stops at the limit"},
}

func isAccepted(text string) bool {
	for _, a := range accepted {
		if regexp.MustCompile(a.statement).MatchString(strings.TrimSpace(text)) {
			return true
		}
	}
	return false
}

var scanned = regexp.MustCompile(`^SCAN (\w+)`)

// explained is what EXPLAIN QUERY PLAN takes.
var explained = regexp.MustCompile(`(?i)^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|REPLACE)\b`)

// plans fails where a statement that ran goes through a table: an index alone does not help, SCAN … USING INDEX reads
// all of it.
func plans(t *testing.T, dir string, texts map[string]bool) {
	if len(texts) < 20 {
		t.Errorf("got %d statements, want those of all units", len(texts))
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.db"))
	testkit.Must(t, err)
	if len(found) != 1 {
		t.Fatalf("got the databases %q in %s, want one", found, dir)
	}
	db, err := sql.Open("sqlite3", found[0])
	testkit.Must(t, err)
	defer func() { _ = db.Close() }()
	for _, text := range sortedTexts(texts) {
		if !explained.MatchString(text) || isAccepted(text) ||
			strings.Contains(text, "UPDATE sqlite_schema") { // of a migration
			continue
		}
		for _, detail := range planOf(t, db, text) {
			m := scanned.FindStringSubmatch(detail)
			if m == nil || bounded[m[1]] != "" || ofQuery(text, m[1]) {
				continue
			}
			t.Errorf("got the step %q, want none that goes through a table without a bound, of\n%s", detail, text)
		}
	}
}

// planOf are the steps of a statement.
func planOf(t *testing.T, db *sql.DB, text string) (steps []string) {
	rows, err := db.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+text, arguments(text)...)
	if err != nil {
		t.Errorf("not explained: %v\n%s", err, text)
		return nil
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		testkit.Must(t, rows.Scan(&id, &parent, &unused, &detail))
		steps = append(steps, detail)
	}
	testkit.Must(t, rows.Err())
	return steps
}

var numbered = regexp.MustCompile(`\?(\d*)`)

// arguments are as many as the statement takes: the driver asks for each.
func arguments(text string) []any {
	most := 0
	for _, m := range numbered.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			n = most + 1
		}
		most = max(most, n)
	}
	return make([]any, most)
}

// ofQuery tells whether the name is that of a part of the statement itself, whose rows are read by steps of their own.
func ofQuery(text, name string) bool {
	return regexp.MustCompile(`(?i)\b`+name+`(\s*\([^)]*\))?\s+AS\s+(MATERIALIZED\s+)?\(`).MatchString(text) ||
		regexp.MustCompile(`(?i)\)\s+(AS\s+)?`+name+`\b`).MatchString(text)
}
