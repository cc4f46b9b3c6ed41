package metrics

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Negotiate returns the format that the Accept header of a scraper prefers. OpenMetrics has to be asked for by name.
func Negotiate(h http.Header) Format {
	openMetrics, prometheus := 0.0, 0.0
	for accepted := range strings.SplitSeq(strings.Join(h.Values("Accept"), ","), ",") {
		name, parameters, err := mime.ParseMediaType(accepted)
		if err != nil {
			continue
		}
		quality, version := 1.0, parameters["version"]
		if q, given := parameters["q"]; given {
			if quality, err = strconv.ParseFloat(q, 64); err != nil || !(quality >= 0 && quality <= 1) {
				continue
			}
		}
		switch {
		case name == "application/openmetrics-text" && (version == "" || version == "1.0.0"):
			openMetrics = max(openMetrics, quality)
		case name == "text/plain" && (version == "" || version == "0.0.4"):
			prometheus = max(prometheus, quality)
		}
	}
	if openMetrics > 0 && openMetrics >= prometheus {
		return OpenMetrics
	}
	return Prometheus
}
