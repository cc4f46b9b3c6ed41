package picture

import "github.com/10f93571/retry/plot"

// drawCurve draws the delay before each retry: the band that the jitter may use, the mean of what was played through, and the base.
func drawCurve(p panel, s plot.Study, a axes) {
	p.begin("Delay before retry n", a.delay.Log, entry{"range", band}, entry{"base", baseInk}, entry{"mean", curveInk})
	n := len(s.Retries)
	var top, bottom, mean, base []point
	for i, r := range s.Retries {
		x := p.x(place(i+1, n))
		top = append(top, point{x, p.y(a.delay.Place(r.Most))})
		bottom = append(bottom, point{x, p.y(a.delay.Place(r.Least))})
		mean = append(mean, point{x, p.y(a.delay.Place(r.Mean))})
		base = append(base, point{x, p.y(a.delay.Place(r.Base))})
	}
	p.add(area{points: belt(wide(top), wide(bottom)), fill: band})
	p.across(times(a.delay, 7))
	p.add(line{points: wide(base), width: 1.2, dashed: true, stroke: baseInk})
	p.add(line{points: wide(mean), width: 1.8, stroke: curveInk})
	if n <= 50 {
		p.add(dots{points: mean, radius: 2.6, fill: curveInk})
	}
	p.along(steps(n, 10))
}

// wide gives a single point the width that a line has.
func wide(points []point) []point {
	if len(points) != 1 {
		return points
	}
	p := points[0]
	return []point{{p.x - 12, p.y}, {p.x + 12, p.y}}
}

// belt is what lies between two lines.
func belt(top, bottom []point) []point {
	all := append([]point{}, top...)
	for i := len(bottom) - 1; i >= 0; i-- {
		all = append(all, bottom[i])
	}
	return all
}
