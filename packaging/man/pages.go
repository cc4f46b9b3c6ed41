package man

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/10f93571/retry/cli/syntax"
)

// Sources are what the pages are made of.
type Sources struct {
	Commands []*syntax.Parser
	Schema   []byte // of the config file
	Docs     string // the directory of the pages in Markdown
}

// command returns the parser of one of retry's own commands.
func (s *Sources) command(name string) *syntax.Parser {
	i := slices.IndexFunc(s.Commands, func(c *syntax.Parser) bool { return c.Name() == name })
	return s.Commands[i]
}

// page is one of the manual.
type page struct {
	name    string
	section int
	about   string // what it is, in a line
	write   func(*mdoc, *Sources) error
}

var pages = []page{
	{"retry", 1, "run a command until it succeeds, and remember every attempt", writeRetry},
	{"retry-http", 1, "send an HTTP request until it succeeds", writeHTTP},
	{"retry-serve", 1, "a queue of tasks with workers and an HTTP API", writeServe},
	{"retry-policy", 5, "how often, how long and after which outcomes retry tries again", writePolicy},
	{"retry-config", 5, "the config file of retry", writeConfig},
}

// Pages returns the source of each page by the name of its file. The line of its date is left empty.
func Pages(s *Sources) (map[string]string, error) {
	all := map[string]string{}
	for _, p := range pages {
		m := &mdoc{}
		m.macro(".Dd")
		m.macro(".Dt %s %d", strings.ToUpper(p.name), p.section)
		m.macro(".Os")
		m.section("NAME")
		m.macro(".Nm %s", p.name)
		m.macro(".Nd %s", p.about)
		if err := p.write(m, s); err != nil {
			return nil, fmt.Errorf("write %s: %w", p.name, err)
		}
		m.section("SEE ALSO")
		var others []string
		for _, other := range pages {
			if other.name != p.name {
				others = append(others, fmt.Sprintf(`\fB%s\fR(%d)`, code(other.name), other.section))
			}
		}
		m.paragraph(strings.Join(others, ", "))
		all[fmt.Sprintf("%s.%d", p.name, p.section)] = m.String()
	}
	return all, nil
}

// elsewhere are commands with a page of their own.
var elsewhere = []string{"http", "serve", "worker", "token"}

func writeRetry(m *mdoc, s *Sources) error {
	m.synopsis(s.command("run"))
	m.section("DESCRIPTION")
	m.introduction(s.command("run"))
	m.section("OPTIONS")
	m.flags(s.command("run"))
	m.section("COMMANDS")
	for _, c := range s.Commands {
		word, _, _ := strings.Cut(c.Name(), " ")
		if word != "run" && !slices.Contains(elsewhere, word) {
			m.command(c, s.command("run"))
		}
	}
	m.section("ENVIRONMENT")
	m.paragraph(`Each flag of a run has a variable: \fB\-\-kill\-after\fR is \fBRETRY_KILL_AFTER\fR. A flag goes before its variable.`)
	m.terms([][2]string{
		{`\fBRETRY_STATE_DIR\fR`, "The directory of the journal."},
		{`\fBRETRY_CONFIG\fR`, "The config file."},
		{`\fBRETRY_TASK_ID\fR, \fBRETRY_ATTEMPT\fR, \fBRETRY_MAX_ATTEMPTS\fR, \fBRETRY_IDEMPOTENCY_KEY\fR, \fBRETRY_LAST_EXIT\fR, ` +
			`\fBRETRY_DEADLINE\fR`, "What the command finds: the task, the number of the attempt, of all attempts (0 is no limit), a key " +
			"that is the same in each of them, the exit status of the attempt before, and the end of the budget."},
	})
	m.section("EXIT STATUS")
	m.terms([][2]string{
		{"0", "The task succeeded."},
		{"the command's", "Of the last attempt; 128 + n for signal n; 1 where it was 0 and still no success."},
		{"75", "A request has to wait for longer than it may; retry resume goes on with it."},
		{"124", "The last attempt timed out, or the end of the budget stopped it while it ran."},
		{"125", "An error of retry itself, wrong flags included; nothing ran."},
		{"126, 127", "The command is not executable, or not found."},
	})
	return nil
}

func writeHTTP(m *mdoc, s *Sources) error {
	c := s.command("http")
	m.synopsis(c)
	m.section("DESCRIPTION")
	m.introduction(c)
	m.section("OPTIONS")
	m.flags(c)
	return m.doc(s, "REQUESTS AND REPLIES", "http.md")
}

func writeServe(m *mdoc, s *Sources) error {
	m.synopsis(s.command("serve"))
	m.section("DESCRIPTION")
	m.introduction(s.command("serve"))
	m.section("OPTIONS")
	m.flags(s.command("serve"))
	m.section("COMMANDS")
	for _, c := range s.Commands {
		if word, _, _ := strings.Cut(c.Name(), " "); slices.Contains([]string{"worker", "token"}, word) {
			m.command(c, s.command("serve"))
		}
	}
	return m.doc(s, "THE SERVICE", "service.md")
}

func writePolicy(m *mdoc, s *Sources) error {
	m.section("DESCRIPTION")
	err := m.docPart(s, "policy-file.md", "Named policies and the config file", "Where a policy comes from")
	if err == nil {
		err = m.keys(s, "POLICY KEYS", "policy")
	}
	if err != nil {
		return err
	}
	m.section("CURVES AND JITTERS")
	if err := m.docPart(s, "policies/README.md", "Choose a policy", "The curves", "The jitters"); err != nil {
		return err
	}
	return m.doc(s, "CONDITIONS", "conditions.md")
}

func writeConfig(m *mdoc, s *Sources) error {
	m.section("DESCRIPTION")
	err := m.docPart(s, "policy-file.md")
	for _, table := range []string{"defaults", "worker", "serve"} {
		if err == nil {
			err = m.keys(s, "THE TABLE "+table, table)
		}
	}
	if err != nil {
		return err
	}
	m.section("FILES")
	m.terms([][2]string{
		{`\fB$XDG_CONFIG_HOME/retry/config.toml\fR`, "The config file of a user."},
		{`\fB\(ti/.config/retry/config.toml\fR`, "The same, where that variable is not set."},
	})
	return nil
}

// doc writes a section that is a page of docs.
func (m *mdoc) doc(s *Sources, title, file string) error {
	m.section(title)
	return m.docPart(s, file)
}

func (m *mdoc) docPart(s *Sources, file string, titles ...string) error {
	source, err := os.ReadFile(filepath.Join(s.Docs, filepath.FromSlash(file)))
	if err == nil {
		m.markdown(source, titles...)
	}
	return err
}

// keys writes the keys of a table of the config file.
func (m *mdoc) keys(s *Sources, title, table string) error {
	type object struct {
		Description          string
		Properties           map[string]*object
		AdditionalProperties json.RawMessage
	}
	var schema object
	if err := json.Unmarshal(s.Schema, &schema); err != nil {
		return err
	}
	found := schema.Properties[table]
	if table == "policy" && found != nil {
		var each object
		if err := json.Unmarshal(found.AdditionalProperties, &each); err != nil {
			return err
		}
		each.Description, found = found.Description, &each
	}
	if found == nil || len(found.Properties) == 0 {
		return errors.New("the schema has no keys of the table " + table)
	}
	m.section(title)
	m.paragraph(escaped(found.Description))
	var rows [][2]string
	for _, key := range slices.Sorted(maps.Keys(found.Properties)) {
		rows = append(rows, [2]string{`\fB` + code(key) + `\fR`, escaped(found.Properties[key].Description)})
	}
	m.terms(rows)
	return nil
}

// synopsis writes the lines of a usage.
func (m *mdoc) synopsis(c *syntax.Parser) {
	m.section("SYNOPSIS")
	_, rest, _ := strings.Cut(c.Usage(), "Usage:\n")
	usage, _, _ := strings.Cut(rest, "\n\n")
	for line := range strings.Lines(usage) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		m.macro(".Nm %s", name)
		m.lines(code(rest))
	}
}

// introduction writes what stands above the flags in the help of a command.
func (m *mdoc) introduction(c *syntax.Parser) {
	for part := range strings.SplitSeq(strings.TrimSpace(c.Usage()), "\n\n") {
		title, lines, isList := strings.Cut(part, ":\n")
		switch {
		case strings.HasPrefix(part, "Usage:\n"):
		case isList && strings.HasPrefix(lines, "  "):
			m.paragraph(escaped(title) + ":")
			m.display(strings.ReplaceAll("\n"+lines, "\n  ", "\n"))
		default:
			m.paragraph(escaped(part))
		}
	}
}

// command writes a part about one of retry's own commands. The flags that it shares with the page's main command are
// named alone.
func (m *mdoc) command(c, main *syntax.Parser) {
	m.part("retry " + c.Name())
	_, rest, _ := strings.Cut(c.Usage(), "Usage:\n")
	usage, _, _ := strings.Cut(rest, "\n\n")
	m.display(strings.ReplaceAll("\n"+usage, "\n  ", "\n"))
	m.introduction(c)
	var own [][2]string
	var shared []string
	mainRows := flagRows(main)
	for _, row := range flagRows(c) {
		if slices.Contains(mainRows, row) {
			shared = append(shared, row[0])
		} else {
			own = append(own, row)
		}
	}
	if len(shared) > 3 {
		m.paragraph("It has these flags as above: " + strings.Join(shared, ", ") + ".")
	} else {
		own = flagRows(c)
	}
	m.terms(slices.Concat(argumentRows(c), own))
}

// flags writes the arguments and flags of a command.
func (m *mdoc) flags(c *syntax.Parser) { m.terms(slices.Concat(argumentRows(c), flagRows(c))) }

func argumentRows(c *syntax.Parser) (rows [][2]string) {
	for _, argument := range c.Arguments() {
		rows = append(rows, [2]string{`\fI` + code(argument[0]) + `\fR`, escaped(argument[1])})
	}
	return rows
}

func flagRows(c *syntax.Parser) (rows [][2]string) {
	for _, group := range c.Groups() {
		for _, f := range group.Flags {
			if f.Name == "help" {
				continue
			}
			term := `\fB` + code("--"+f.Name) + `\fR`
			if f.Short != 0 {
				term = `\fB` + code("-"+string(f.Short)) + `\fR, ` + term
			}
			if !f.IsBool() {
				term += `=\fI` + code(f.FormatPlaceHolder()) + `\fR`
			}
			rows = append(rows, [2]string{term, escaped(c.HelpOf(f))})
		}
	}
	return rows
}
