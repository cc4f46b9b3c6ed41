package cli

import (
	"fmt"
	"slices"
	"strings"
)

// curlHints say what takes the place of flags that curl has and retry http has not.
var curlHints = []struct{ names, hint string }{
	{"O remote-name J remote-header-name", "-o FILE names the file; none is taken from the URL or the reply"},
	{"output-dir create-dirs", "-o DIR/FILE, where the directory is there already"},
	{"remove-on-error no-clobber", "leave it out: -o changes a file by a whole success alone"},
	{"w write-out", "--report FILE writes the status and the time of each phase as JSON"},
	{"D dump-header", "-i shows the header before the body"},
	{"trace trace-ascii trace-time", "-i shows the reply's header, retry status TASK the time of each phase"},
	{"stderr", "2>FILE"},
	{"fail-with-body fail-early", "leave it out: the exit status is 22 for any error, and its body is shown unless -f is given"},
	{"retry", "--retries N, or -n N for all attempts; without it there are 5 of them"},
	{"retry-delay", "-b constant:TIME"},
	{"retry-max-time", "-B TIME, a budget for everything together"},
	{"retry-connrefused", "leave it out: a refused connection is tried again in any case"},
	{"retry-all-errors", "--idempotent where two requests do what one does, or --retry-on any"},
	{"cookie", "-H 'Cookie: NAME=VALUE'"},
	{"c cookie-jar", "no cookies are kept; -H 'Cookie: NAME=VALUE' sends one"},
	{"oauth2-bearer", "-H 'Authorization: Bearer {env:NAME}'"},
	{"netrc netrc-file netrc-optional", "-u 'USER:{env:NAME}'; no .netrc is read"},
	{"basic", "leave it out: -u is basic authentication"},
	{"digest ntlm negotiate anyauth", "-u is basic authentication; no other is known"},
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

// curlHint is what there is to say of a flag of curl's, by its name without dashes; empty for nothing.
func curlHint(name string) string {
	for _, row := range curlHints {
		if slices.Contains(strings.Fields(row.names), name) {
			return row.hint
		}
	}
	return ""
}

// checkCurl finds the first flag that retry http does not have, where it is one of curl's or has one letter: the nearest of our own
// letters would be no help.
func (s flagSet) checkCurl(words []string) error {
	for len(words) > 0 && words[0] != "--" {
		word := words[0]
		words = words[1:]
		if !isFlag(word) {
			continue
		}
		valued, err := s.checkCurlFlag(word)
		if err != nil {
			return err
		}
		if valued && len(words) > 0 {
			words = words[1:]
		}
	}
	return nil
}

// checkCurlFlag looks at a word of flags, and reports whether the next word is a value.
func (s flagSet) checkCurlFlag(word string) (valued bool, err error) {
	if long, isLong := strings.CutPrefix(word, "--"); isLong {
		name, _, attached := strings.Cut(long, "=")
		if s.named[name] != nil {
			return !attached && !s.named[name].IsBool(), nil
		}
		return false, unknownCurl("--"+name, name, false)
	}
	shorts := word[1:]
	for i, letter := range shorts {
		flag := s.named[string(letter)]
		switch {
		case flag == nil && s.named[shorts] != nil: // a long one with a dash too few
			return false, nil
		case flag == nil:
			return false, unknownCurl("-"+string(letter), string(letter), len(shorts) == len(string(letter)))
		case !flag.IsBool():
			return i+1 == len(shorts), nil
		}
	}
	return false, nil
}

// unknownCurl is nil where kong says it better, unless it has to be said.
func unknownCurl(written, name string, always bool) error {
	if hint := curlHint(name); hint != "" {
		return fmt.Errorf("unknown flag %s\nhint: %s", written, hint)
	}
	if always {
		return fmt.Errorf("unknown flag %s\nhint: retry http --help lists the flags; they are those of curl that make sense here", written)
	}
	return nil
}
