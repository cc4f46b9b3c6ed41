package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
)

var groupColumns = []column{{title: "TASKS", weight: always}, {title: "ERROR", weight: always}, {title: "TARGET", weight: always},
	{title: "POLICY", weight: 4}, {title: "SINCE", weight: 5}, {title: "LAST", weight: 2}, {title: "NEWEST", weight: 3}}

// groupsShown is how many groups have a command of their own below the table.
const groupsShown = 10

// Groups draws the dead letters in groups, and a command that requeues each.
func Groups(w io.Writer, s Screen, groups []state.Group, now time.Time) error {
	if len(groups) == 0 {
		_, err := fmt.Fprintln(w, "no dead letters")
		return err
	}
	rows, all := [][]string{titles(groupColumns)}, 0
	for _, g := range groups {
		rows = append(rows, []string{
			strconv.Itoa(g.Count), s.Paint(Red, brief(orDash(g.Error))), brief(groupTarget(g)), brief(orDash(g.PolicyID)),
			Stamp(g.First, now), Stamp(g.Last, now), ShortID(g.Example),
		})
		all += g.Count
	}
	if err := s.WriteRows(w, pick(rows, s.columns(rows, groupColumns))); err != nil || s.Height > 0 {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n# %s. To give a group fresh attempts, 50 a second:\n", text.Count(all, "dead letter"))
	for _, g := range groups[:min(len(groups), groupsShown)] {
		b.WriteString(requeueGroup(g) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// requeueGroup is the command that requeues a group. Words are quoted where a shell needs that.
func requeueGroup(g state.Group) string {
	words := []string{"retry", "requeue", "--dead", "--host", orDash(g.Host), "--policy", orDash(g.PolicyID)}
	if g.Error != "" {
		words = append(words, "--error", g.Error)
	}
	return Command(words)
}

func groupTarget(g state.Group) string {
	if g.Host == "" {
		return "commands"
	}
	return g.Host
}

func orDash(word string) string {
	if word == "" {
		return "-"
	}
	return word
}

// groupJSON is the stable form of a group; docs/json.md describes it.
type groupJSON struct {
	Tasks   int     `json:"tasks"`
	Error   *string `json:"error"`
	Host    *string `json:"host"`
	Policy  *string `json:"policy"`
	FirstAt *string `json:"first_at"`
	LastAt  *string `json:"last_at"`
	Newest  string  `json:"newest"`
}

// GroupsJSON writes the dead letters in groups.
func GroupsJSON(w io.Writer, groups []state.Group) error {
	list := make([]groupJSON, len(groups))
	for i, g := range groups {
		list[i] = groupJSON{g.Count, present(g.Error), present(g.Host), present(g.PolicyID), timestamp(g.First),
			timestamp(g.Last), g.Example}
	}
	return WriteJSON(w, struct {
		Groups []groupJSON `json:"groups"`
	}{list})
}
