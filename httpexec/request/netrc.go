package request

import (
	"cmp"
	"errors"
	"io/fs"
	"strings"
)

// Netrc holds the users and passwords of hosts, as the file .netrc has them.
type Netrc []machine

type machine struct {
	host            string // empty for the default
	login, password string
}

// ReadNetrc reads the file of a request; a missing one is empty unless it is needed.
func ReadNetrc(r *Request) (Netrc, error) {
	if r.Netrc == "" {
		return nil, nil
	}
	text, err := ReadAgain(r.Netrc)
	if errors.Is(err, fs.ErrNotExist) && !r.NetrcNeeded {
		return nil, nil
	}
	return parseNetrc(string(text)), err
}

// parseNetrc reads the words of the file. A macro lasts until an empty line.
func parseNetrc(text string) (all Netrc) {
	key, macro := "", false
	for line := range strings.Lines(text) {
		words := netrcWords(line)
		macro = macro && len(words) > 0
		if macro || len(words) > 0 && key == "" && strings.HasPrefix(words[0], "#") {
			continue
		}
		for _, word := range words {
			switch {
			case key != "":
				all = all.with(key, word)
				key = ""
			case word == "default":
				all = append(all, machine{})
			case word == "macdef":
				macro = true
			case word == "machine", word == "login", word == "password", word == "account":
				key = word
			}
			if macro {
				break
			}
		}
	}
	return all
}

// with adds what a word of the file says.
func (n Netrc) with(key, value string) Netrc {
	switch {
	case key == "machine":
		return append(n, machine{host: value})
	case len(n) == 0:
	case key == "login":
		n[len(n)-1].login = value
	case key == "password":
		n[len(n)-1].password = value
	}
	return n
}

// netrcWords splits a line at white space. A word in double quotes may hold some, and has escapes.
func netrcWords(line string) (words []string) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " \t") {
		if line[0] != '"' {
			word, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
			words, line = append(words, word), rest
			continue
		}
		var word strings.Builder
		i := 1
		for ; i < len(line) && line[i] != '"'; i++ {
			c := line[i]
			if c == '\\' && i+1 < len(line) {
				i++
				c = line[i]
				if at := strings.IndexByte("ntr", c); at >= 0 {
					c = "\n\t\r"[at]
				}
			}
			word.WriteByte(c)
		}
		words, line = append(words, word.String()), line[min(i+1, len(line)):]
	}
	return words
}

// User returns name:password for a host, and for that name where one is given; empty for none.
func (n Netrc) User(host, name string) string {
	for _, m := range n {
		fits := m.host == "" || strings.EqualFold(m.host, host)
		if fits && (name == "" || m.login == "" || m.login == name) && m.login+m.password != "" {
			return cmp.Or(name, m.login) + ":" + m.password
		}
	}
	return ""
}
