package render

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Prunable says how many finished tasks a prune would remove, and when the first and the last of them ended.
func Prunable(w io.Writer, tasks int, oldest, newest, now time.Time) error {
	switch tasks {
	case 0:
		_, err := fmt.Fprintln(w, "would prune no task")
		return err
	case 1:
		_, err := fmt.Fprintf(w, "would prune 1 task, which finished %s\n", Stamp(oldest, now))
		return err
	}
	_, err := fmt.Fprintf(w, "would prune %s: the oldest finished %s, the newest %s\n", Count(tasks, "task"), Stamp(oldest, now), Stamp(newest, now))
	return err
}

// Count writes a number with what it counts: "1 task", "3 tasks", "2 policies".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
