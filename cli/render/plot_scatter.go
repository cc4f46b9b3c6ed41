package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/10f93571/retry/internal/text"
)

const (
	scatterRows = 12
	fewestTasks = 24  // that are drawn, however many retries each has
	mostTasks   = 200 // more would fill the rows
	signs       = "123456789abcdefghijklmnopqrstuvwxyz"
	braille     = 0x2800
)

// brailleBits are the dots of a braille cell by column and by row from above.
var brailleBits = [2][4]rune{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}

// retryColours repeat: neighbours can be told apart, and far ones lie apart.
var retryColours = [...]lipgloss.Style{red, yellow, green, cyan, blue, magenta}

// perSign is how many retries share a sign or a colour.
func (k sketch) perSign() int { return (len(k.study.Retries) + len(signs) - 1) / len(signs) }

func (k sketch) group(retry int) int { return (retry - 1) / k.perSign() }

// paintRetry paints what belongs to a retry in its colour.
func (k sketch) paintRetry(retry int, text string) string {
	return k.paint(retryColours[k.group(retry)%len(retryColours)], text)
}

// scatter draws every retry of every task: when it comes, and which one it is.
func (k sketch) scatter() []string {
	title, scale := "Retries of "+text.Count(k.study.Tasks, "task"), scaleName(k.axes.time.Log)
	if drawn := k.drawn(); drawn < k.study.Tasks {
		title = fmt.Sprintf("Retries of the first %d of %d tasks", drawn, k.study.Tasks)
	}
	lines := []string{k.title(title+" over the time since the first failure"+scale, title+" over time"+scale, title+scale), k.legendOfRetries()}
	return append(lines, newCloud(k).rows()...)
}

// drawn is how many tasks are drawn: of so many that most of their retries have a dot of their own.
func (k sketch) drawn() int {
	dots := scatterRows * 4 * k.cells() * 2
	return min(k.study.Drawn, max(dots/len(k.study.Retries), fewestTasks), mostTasks)
}

// legendOfRetries says what a colour or a sign means.
func (k sketch) legendOfRetries() string {
	n, each := len(k.study.Retries), k.perSign()
	if k.Color {
		return k.colourLegend(n, each)
	}
	text := "a sign is the number of the retry"
	switch {
	case each > 1:
		text = fmt.Sprintf("signs 1-9, a-z stand for %d retries each", each)
	case n == 10:
		text = "a sign is the number of the retry, a is 10"
	case n > 10:
		text = fmt.Sprintf("a sign is the number of the retry, a is 10, %c is %d", signs[n-1], n)
	}
	return k.title(text)
}

func (k sketch) colourLegend(n, each int) string {
	line := "retry"
	for first := 1; first <= n; first += each {
		text := strconv.Itoa(first)
		if last := min(first+each-1, n); last > first {
			text += "–" + strconv.Itoa(last)
		}
		if lipgloss.Width(line)+len(text)+3 > k.width {
			return line + " …"
		}
		line += " " + k.paintRetry(first, text)
	}
	return line
}

// cloud counts the retries that fall into a cell.
type cloud struct {
	sketch
	width, height int
	dots          []rune   // of a cell: its braille dots
	counts        []uint32 // of a cell and a group of retries
	groups        int
}

func newCloud(k sketch) *cloud {
	drawn := k.drawn()
	c := &cloud{sketch: k, width: k.cells(), height: min(max((drawn+3)/4, 1), scatterRows), groups: k.group(len(k.study.Retries)) + 1}
	c.dots, c.counts = make([]rune, c.width*c.height), make([]uint32, c.width*c.height*c.groups)
	for _, d := range k.study.Dots {
		if d.Task >= drawn {
			break
		}
		x := min(int(k.axes.time.Place(d.At)*float64(2*c.width)), 2*c.width-1)
		y := 4*c.height - 1 - d.Task*4*c.height/max(drawn, 4*c.height)
		cell := y/4*c.width + x/2
		c.dots[cell] |= brailleBits[x%2][y%4]
		c.counts[cell*c.groups+k.group(d.Retry)]++
	}
	return c
}

func (c *cloud) rows() (rows []string) {
	for y := range c.height {
		var b strings.Builder
		for x := range c.width {
			b.WriteString(c.cell(y*c.width + x))
		}
		label := ""
		switch {
		case y == c.height-1:
			label = "1"
		case y == 0:
			label = strconv.Itoa(c.drawn())
		}
		rows = append(rows, c.row(label, b.String()))
	}
	return rows
}

// cell shows the retry that most of what falls into it is.
func (c *cloud) cell(i int) string {
	if c.dots[i] == 0 {
		return " "
	}
	counts := c.counts[i*c.groups : (i+1)*c.groups]
	most := 0
	for g, n := range counts {
		if n >= counts[most] {
			most = g
		}
	}
	if !c.Color {
		return signs[most : most+1]
	}
	return c.paint(retryColours[most%len(retryColours)], string(braille+c.dots[i]))
}
