package picture

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/plot/chart"
)

// The sizes of a column, which shows one chart.
const (
	columnWidth   = 400
	leftMargin    = 62 // for the labels of the vertical axes
	rightMargin   = 22
	panelsHeight  = 668
	figuresHeight = 142

	bars       = 90 // of the load
	padding    = 5  // between the frame of a panel and the data
	smallSize  = 10.5
	titleSize  = 12
	labelGap   = 8 // the least distance between two labels in a row
	longLabel  = 200
	maxColumns = 3
)

// Each draws every study alone, but all with the same axes, and without the figures.
func Each(studies []plot.Study) []string {
	var all []string
	for _, c := range chart.New(studies, bars) {
		sc := scene{width: columnWidth, height: panelsHeight, title: visibleLabel(c.Study), description: description(c.Study)}
		sc.addPanels(0, 0, c)
		all = append(all, sc.svg())
	}
	return all
}

// layout draws the charts of studies side by side, up to three in a row; four are two and two.
func layout(studies []plot.Study) *scene {
	columns := max(1, min(len(studies), maxColumns))
	if len(studies) == 4 {
		columns = 2
	}
	rows := (len(studies) + columns - 1) / columns
	sc := &scene{width: float64(columns * columnWidth), height: float64(rows * (panelsHeight + figuresHeight))}
	sc.add(rectangle{box{0, 0, sc.width, sc.height}, background})
	var titles, descriptions []string
	for i, c := range chart.New(studies, bars) {
		left, top := float64(i%columns*columnWidth), float64(i/columns*(panelsHeight+figuresHeight))
		sc.addPanels(left, top, c)
		sc.addFigures(left, top+panelsHeight, c.Study)
		titles, descriptions = append(titles, visibleLabel(c.Study)), append(descriptions, description(c.Study))
	}
	sc.title, sc.description = "retry plot "+strings.Join(titles, " "), strings.Join(descriptions, "\n")
	return sc
}

func (sc *scene) addPanels(left, top float64, c chart.Chart) {
	at := point{left + leftMargin - padding, top + 26}
	room := columnWidth - leftMargin - rightMargin + 2.0*padding
	about := shorten(subtitle(c.Study), smallSize, false, room)
	sc.add(
		label{at: at, text: shorten(visibleLabel(c.Study), 15, true, room), size: 15, bold: true, fill: textColour},
		label{at: point{at.x, at.y + 17}, text: about, size: smallSize, fill: muted},
	)
	frame := func(from, to float64) panel {
		return panel{sc, box{left + leftMargin, top + from, left + columnWidth - rightMargin, top + to}}
	}
	frame(80, 230).drawCurve(c)
	frame(294, 494).drawScatter(c)
	frame(558, 638).drawLoad(c)
}

func (sc *scene) addFigures(left, top float64, s plot.Study) {
	y := top + 30
	from, to := left+leftMargin-padding, left+columnWidth-rightMargin+padding
	for _, f := range chart.Figures(s) {
		sc.add(
			line{points: []point{{from, y - 15}, {to, y - 15}}, width: 1, stroke: grid},
			label{at: point{from, y}, text: f.Name, size: smallSize, fill: muted},
			label{at: point{to, y}, text: f.Value, size: smallSize, anchor: end, fill: textColour},
		)
		y += 21
	}
}

// visibleLabel escapes control characters, which XML forbids, and characters that change the direction of the text
// after them.
func visibleLabel(s plot.Study) string { return visible(s.Subject.Label) }

func visible(label string) string { return text.Escape(text.Shorten(label, longLabel)) }

func subtitle(s plot.Study) string {
	spec := s.Subject.Policy.Backoff
	return fmt.Sprintf("%s · %s · %s of %s",
		visible(spec.Curve()), visible(spec.Jitter()), text.Count(len(s.Retries), "retry"), text.Count(s.Tasks, "task"))
}

// description says in words what a chart shows.
func description(s plot.Study) string {
	lines := []string{visibleLabel(s) + ": " + subtitle(s) + "."}
	for _, r := range s.Retries {
		if r.N > 10 {
			break
		}
		lines = append(lines, fmt.Sprintf("Retry %d after %s on average, base %s.",
			r.N, chart.FormatTime(r.Mean), text.FormatDuration(r.Base)))
	}
	for _, f := range chart.Figures(s) {
		lines = append(lines, f.Name+": "+f.Value+".")
	}
	return strings.Join(lines, " ")
}

// panel is one diagram of a scene. Its box holds the data; axes and titles are around it.
type panel struct {
	*scene
	box
}

func (p panel) x(place float64) float64 { return p.left + place*p.box.width() }
func (p panel) y(place float64) float64 { return p.bottom - place*p.box.height() }

// drawFrame draws the axes and what stands above the panel. A logarithmic axis is named, as its bars would be taken for
// shares.
func (p panel) drawFrame(title string, log bool) {
	frame := p.frame()
	at := point{frame.left, frame.top - 8}
	p.add(
		line{width: 1, stroke: grid, points: []point{
			{frame.left, frame.top}, {frame.left, frame.bottom}, {frame.right, frame.bottom},
		}},
		label{at: at, text: title, size: titleSize, bold: true, fill: textColour},
	)
	if log {
		at.x += textWidth(title, titleSize, true) + 5
		p.add(label{at: at, text: "(log)", size: smallSize, fill: muted})
	}
}

func (p panel) frame() box {
	return box{p.left - padding, p.top - padding, p.right + padding, p.bottom + padding}
}

// drawYTicks draws grid lines, and the labels that have room.
func (p panel) drawYTicks(ticks []chart.Tick) {
	free := p.bottom + smallSize
	for _, t := range ticks {
		y := p.y(t.Place)
		p.add(line{points: []point{{p.left - padding, y}, {p.right + padding, y}}, width: 1, stroke: grid})
		if y <= free {
			p.add(label{at: point{p.left - padding - 5, y + 3.5}, text: t.Label, size: smallSize, anchor: end, fill: muted})
			free = y - smallSize - 3
		}
	}
}

// drawXTicks leaves out a label that would touch the one before it.
func (p panel) drawXTicks(ticks []chart.Tick) {
	free := p.left - padding - labelGap
	for _, t := range ticks {
		x, half := p.x(t.Place), textWidth(t.Label, smallSize, false)/2
		// The first and the last label stay in the picture.
		centre := max(min(x, p.right+padding+9-half), p.left-padding-labelGap+half)
		if centre-half < free {
			continue
		}
		free = centre + half + labelGap
		p.add(
			line{points: []point{{x, p.bottom + padding}, {x, p.bottom + padding + 4}}, width: 1, stroke: muted},
			label{at: point{centre, p.bottom + padding + 16}, text: t.Label, size: smallSize, anchor: middle, fill: muted},
		)
	}
}

// drawTimeTicks draws as many ticks of the axis of time as have room.
func (p panel) drawTimeTicks(c chart.Chart) {
	ticks := c.Time.TimeTicks(9)
	if c.Early != "" {
		ticks = append([]chart.Tick{{Place: 0, Label: c.Early}}, ticks...)
	}
	// Where a label between two others were left out, even steps would look uneven.
	for most := 8; most > 0 && !c.Time.Log && !p.haveRoom(ticks); most-- {
		ticks = c.Time.TimeTicks(most)
	}
	p.drawXTicks(ticks)
}

// haveRoom reports whether no label of the horizontal axis touches the next one.
func (p panel) haveRoom(ticks []chart.Tick) bool {
	for i := 1; i < len(ticks); i++ {
		distance := p.x(ticks[i].Place) - p.x(ticks[i-1].Place)
		if distance < (textWidth(ticks[i].Label, smallSize, false)+textWidth(ticks[i-1].Label, smallSize, false))/2+labelGap {
			return false
		}
	}
	return true
}

// drawCurve draws the delay before each retry: the band of the jitter, the base delay and the mean of the simulated
// delays.
func (p panel) drawCurve(c chart.Chart) {
	p.drawFrame("Delay before retry n", c.Delay.Log)
	p.drawLegend([]string{"range", "base", "mean"}, []colour{bandColour, baseColour, meanColour})
	n := len(c.Curve)
	var top, bottom, mean, base []point
	for i, at := range c.Curve {
		x := p.x(chart.PlaceCount(i+1, n))
		top, bottom = append(top, point{x, p.y(at.Most)}), append(bottom, point{x, p.y(at.Least)})
		mean, base = append(mean, point{x, p.y(at.Mean)}), append(base, point{x, p.y(at.Base)})
	}
	lower := slices.Clone(widened(bottom))
	slices.Reverse(lower)
	p.add(polygon{points: slices.Concat(widened(top), lower), fill: bandColour})
	p.drawYTicks(c.Delay.TimeTicks(7))
	p.add(
		line{points: widened(base), width: 1.2, dashed: true, stroke: baseColour},
		line{points: widened(mean), width: 1.8, stroke: meanColour},
	)
	if n <= 50 {
		p.add(dots{points: mean, radius: 2.6, fill: meanColour})
	}
	p.drawXTicks(chart.CountTicks(n, 10))
}

// drawLegend explains colours, at the right end above a panel.
func (p panel) drawLegend(names []string, colours []colour) {
	at := point{p.frame().right, p.frame().top - 8}
	for i := len(names) - 1; i >= 0; i-- {
		p.add(label{at: at, text: names[i], size: smallSize, anchor: end, fill: muted})
		at.x -= textWidth(names[i], smallSize, false) + 4
		p.add(rectangle{box{at.x - 10, at.y - 8, at.x, at.y + 1}, colours[i]})
		at.x -= 10 + labelGap
	}
}

// widened makes a line of a single point.
func widened(points []point) []point {
	if len(points) != 1 {
		return points
	}
	p := points[0]
	return []point{{p.x - 12, p.y}, {p.x + 12, p.y}}
}

// drawScatter draws a dot for each retry, at its time and its task, in the colour of its number.
func (p panel) drawScatter(c chart.Chart) {
	s := c.Study
	title := "Retries by task"
	if s.Drawn < s.Tasks {
		title = fmt.Sprintf("First %d tasks", s.Drawn)
	}
	p.drawFrame(title, c.Time.Log)
	p.drawYTicks([]chart.Tick{
		{Place: chart.PlaceCount(1, s.Drawn), Label: "1"},
		{Place: chart.PlaceCount(s.Drawn, s.Drawn), Label: strconv.Itoa(s.Drawn)},
	})
	radius := min(max(p.box.height()/float64(max(s.Drawn, 1))*0.45, 1.1), 2.6)
	for _, d := range p.scatterDots(c, radius) {
		p.add(d)
	}
	p.drawTimeTicks(c)
	p.drawRetryLegend(len(s.Retries))
}

// scatterDots groups the dots by colour. Of those on one pixel, or on half a row of pixels, only the latest retry is
// drawn.
func (p panel) scatterDots(c chart.Chart, radius float64) []dots {
	s := c.Study
	columns, rows := int(p.box.width())+2, int(2*p.box.height())+2
	cells := make([]int, columns*rows) // the dot of the study that is drawn there, counted from 1
	at := func(d plot.Dot) point {
		return point{p.x(c.Time.PlaceTime(d.At)), p.y(chart.PlaceCount(d.Task+1, s.Drawn))}
	}
	for i, d := range s.Dots {
		place := at(d)
		cell := &cells[int(math.Round(place.x-p.left))*rows+int(math.Round(2*(place.y-p.top)))]
		if *cell == 0 || s.Dots[*cell-1].Retry < d.Retry {
			*cell = i + 1
		}
	}
	var byShade [shades]dots
	for _, i := range cells {
		if i > 0 {
			fill := shade(s.Dots[i-1].Retry, len(s.Retries))
			group := &byShade[fill-firstShade]
			group.points, group.fill, group.radius = append(group.points, at(s.Dots[i-1])), fill, radius
		}
	}
	return slices.DeleteFunc(byShade[:], func(d dots) bool { return len(d.points) == 0 })
}

// drawRetryLegend explains the colours of n retries: a dot for each, or a scale where there are many.
func (p panel) drawRetryLegend(n int) {
	at := point{p.right + padding, p.top - padding - 8}
	if n > 8 {
		p.drawShadeScale(at, n)
		return
	}
	for i := n; i >= 1; i-- {
		p.add(
			label{at: at, text: strconv.Itoa(i), size: smallSize, anchor: end, fill: muted},
			dots{points: []point{{at.x - 11, at.y - 3.5}}, radius: 3, fill: shade(i, n)},
		)
		at.x -= 19
	}
	p.add(label{at: at, text: "retry", size: smallSize, anchor: end, fill: muted})
}

func (p panel) drawShadeScale(at point, n int) {
	last := strconv.Itoa(n)
	p.add(label{at: at, text: last, size: smallSize, anchor: end, fill: muted})
	at.x -= textWidth(last, smallSize, false) + 4
	const width = 3
	for i := range shades {
		x := at.x - float64(shades-i)*width
		p.add(rectangle{box{x, at.y - 8, x + width, at.y}, firstShade + colour(i)})
	}
	p.add(label{at: point{at.x - shades*width - 4, at.y}, text: "retry 1", size: smallSize, anchor: end, fill: muted})
}

// drawLoad draws a bar for the retries per second during each part of the time.
func (p panel) drawLoad(c chart.Chart) {
	p.drawFrame("Load: retries a second", c.Rate.Log)
	p.drawYTicks(c.Rate.RateTicks())
	for _, b := range c.Load {
		if b.Rate > 0 {
			top := min(p.y(c.Rate.Place(b.Rate)), p.bottom-1) // any load is high enough to be seen
			p.add(rectangle{box{p.x(b.From), top, p.x(b.To), p.bottom}, loadColour})
		}
	}
	p.drawTimeTicks(c)
}
