package flags

import (
	"slices"
	"strings"
)

// curlHints say what to write in place of the flags of curl that retry http does not have.
var curlHints = []struct{ names, hint string }{
	{"J remote-header-name", "-O takes the name from the URL, and -o FILE gives one; none is taken from the reply"},
	{"remote-name-all", "-O"},
	{"output-dir create-dirs", "-o DIR/FILE, where the directory is there already"},
	{"remove-on-error no-clobber", "leave it out: -o changes a file by a whole success alone"},
	{"D dump-header", "-i shows the header before the body"},
	{"trace trace-ascii trace-time", "-i shows the reply's header, retry status TASK the time of each phase"},
	{"stderr", "2>FILE"},
	{"fail-with-body fail-early", "leave it out: the exit status is 22 for any error, and its body is shown unless -f is given"},
	{"retry", "--retries N, or -n N for all attempts; without it there are 5 of them"},
	{"retry-delay", "-b constant:TIME"},
	{"retry-max-time", "-B TIME, a budget for everything together"},
	{"retry-connrefused", "leave it out: a refused connection is tried again in any case"},
	{"retry-all-errors", "--idempotent where two requests do what one does, or --retry-on any"},
	{"junk-session-cookies", "--cookie NAME=VALUE sends some alone"},
	{"oauth2-bearer", "-H 'Authorization: Bearer {env:NAME}'"},
	{"basic", "leave it out: -u is basic authentication"},
	{"ntlm negotiate anyauth", "-u is basic authentication, --digest is digest; no other is known"},
	{"U proxy-user", "-x 'http://USER:{env:NAME}@HOST:PORT'"},
	{"location-trusted", "give the last URL itself: a redirect to another host gets no secrets"},
	{"N no-buffer", "leave it out: a reply is shown whole or not at all"},
	{"g globoff", "leave it out: nothing in a URL is expanded"},
	{"K", "give the flags here: no config file of curl's is read"},
	{"r range", "-H 'Range: bytes=0-99'"},
	{"C continue-at", "leave it out: a download that was cut goes on where it was"},
	{"z time-cond", "-H 'If-Modified-Since: DATE'"},
	{"# progress-bar no-progress-meter", "leave it out: a long transfer has one line, on a terminal alone; -s for none"},
	{"4 ipv4 6 ipv6 connect-to", "--resolve HOST:PORT:ADDRESS"},
	{"http2 tlsv1.2 tlsv1.3", "leave it out: TLS 1.2 is the least, and HTTP/2 is spoken where the server offers it"},
	{"0 http1.0", "--http1.1"},
	{"socks5 socks5-hostname", "-x socks5h://HOST:PORT"},
	{"form-string", "-F NAME=TEXT, where TEXT begins with neither @ nor <"},
	{"url-query", "-G --data-urlencode NAME=TEXT"},
	{"url", "the URL stands by itself: retry http URL"},
	{"next : Z parallel", "a task is one request; retry http once for each"},
	{"V version", "retry --version"},
}

// CurlHint returns the hint for a flag of curl's, given by its name without dashes; empty for any other word.
func CurlHint(name string) string {
	for _, row := range curlHints {
		if slices.Contains(strings.Fields(row.names), name) {
			return row.hint
		}
	}
	return ""
}
