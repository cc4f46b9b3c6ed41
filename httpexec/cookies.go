package httpexec

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/task"
)

// cookie is one of those that a server has set: RFC 6265, section 5.3. http.Client's jar could not be written to a
// file.
type cookie struct {
	domain     string
	subdomains bool // it is for those of the domain, too
	path       string
	secure     bool
	httpOnly   bool
	expires    time.Time // zero: with the session
	name       string
	value      string
}

// cookies are sent and kept by the attempts of a run, and by the redirects that they follow.
type cookies []cookie

// fileTick is how far the time of a file may be behind the clock when it is written.
const fileTick = 20 * time.Millisecond

// loadCookies reads the files of a request, once a run. One that is missing has none. A resume goes on with what the
// attempts before have kept: with a file of --cookie-jar that was there before them none has begun.
func (e *Executor) loadCookies(r *request.Request, t *task.Task) error {
	if e.cookies != nil || len(r.CookieFiles) == 0 && r.CookieJar == "" {
		return nil
	}
	paths := r.CookieFiles
	if t.AttemptCount > 1 && r.CookieJar != "" {
		if info, err := os.Stat(r.CookieJar); err == nil && info.ModTime().After(t.CreatedAt.Add(-fileTick)) {
			paths = append(slices.Clone(paths), r.CookieJar)
		}
	}
	e.cookies = &cookies{}
	for _, path := range paths {
		text, err := request.ReadAgain(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &localError{"read the cookies", err, exitRead}
		}
		for line := range strings.Lines(string(text)) {
			if c, ok := parseCookie(strings.TrimRight(line, "\r\n")); ok {
				e.cookies.add(c, time.Now())
			}
		}
	}
	return nil
}

// parseCookie reads a line of Netscape's format: seven fields between tabs.
func parseCookie(line string) (c cookie, ok bool) {
	line, c.httpOnly = strings.CutPrefix(line, "#HttpOnly_")
	fields := strings.Split(line, "\t")
	if len(fields) == 6 {
		fields = append(fields, "") // without a value
	}
	if len(fields) != 7 || strings.HasPrefix(line, "#") {
		return c, false
	}
	c.domain, c.subdomains = strings.ToLower(strings.TrimPrefix(fields[0], ".")), fields[1] == "TRUE"
	c.path, c.secure, c.name, c.value = fields[2], fields[3] == "TRUE", fields[5], fields[6]
	if at, err := strconv.ParseInt(fields[4], 10, 64); err == nil && at != 0 {
		c.expires = time.Unix(at, 0)
	}
	return c, c.domain != "" && c.name != ""
}

// line writes a cookie as parseCookie reads it.
func (c cookie) line() string {
	prefix, expires := "", int64(0)
	if c.httpOnly {
		prefix = "#HttpOnly_"
	}
	if c.subdomains {
		prefix += "."
	}
	if !c.expires.IsZero() {
		expires = c.expires.Unix()
	}
	yes := map[bool]string{true: "TRUE", false: "FALSE"}
	return fmt.Sprintf("%s%s\t%s\t%s\t%s\t%d\t%s\t%s\n", prefix, c.domain, yes[c.subdomains], c.path, yes[c.secure],
		expires, c.name, c.value)
}

// add keeps a cookie in place of the one of the same name, and drops one that has expired.
func (l *cookies) add(c cookie, now time.Time) {
	*l = slices.DeleteFunc(*l, func(old cookie) bool {
		return old.name == c.name && old.domain == c.domain && old.path == c.path
	})
	if c.expires.IsZero() || c.expires.After(now) {
		*l = append(*l, c)
	}
}

// receive keeps what a reply sets.
func (l *cookies) receive(response *http.Response, u *url.URL, now time.Time) {
	host := strings.ToLower(u.Hostname())
	for _, set := range response.Cookies() {
		c := cookie{domain: host, path: set.Path, secure: set.Secure, httpOnly: set.HttpOnly, expires: set.Expires,
			name: set.Name, value: set.Value}
		if set.Quoted {
			c.value = `"` + c.value + `"`
		}
		if set.MaxAge != 0 { // which counts for more than the date
			c.expires = now.Add(time.Duration(set.MaxAge) * time.Second)
		}
		if domain := strings.ToLower(strings.TrimPrefix(set.Domain, ".")); domain != "" && domain != host {
			if !strings.Contains(domain, ".") || !isSubdomain(host, domain) {
				continue // another's, or that of all of a country
			}
			c.domain, c.subdomains = domain, true
		} else if domain != "" {
			c.subdomains = net.ParseIP(host) == nil
		}
		if !strings.HasPrefix(c.path, "/") {
			c.path = u.Path[:max(0, strings.LastIndexByte(u.Path, '/'))]
			if c.path == "" {
				c.path = "/"
			}
		}
		if !c.secure || isSecure(u) {
			l.add(c, now)
		}
	}
}

// forURL returns the cookies to send, that of the longest path first.
func (l *cookies) forURL(u *url.URL, now time.Time) (matching cookies) {
	host := strings.ToLower(u.Hostname())
	for _, c := range *l {
		path, live := strings.TrimSuffix(c.path, "/"), c.expires.IsZero() || c.expires.After(now)
		if live && (host == c.domain || c.subdomains && isSubdomain(host, c.domain)) && (!c.secure || isSecure(u)) &&
			(u.Path == c.path || path == "" || strings.HasPrefix(u.Path+"/", path+"/")) {
			matching = append(matching, c)
		}
	}
	slices.SortStableFunc(matching, func(a, b cookie) int { return len(b.path) - len(a.path) })
	return matching
}

func isSubdomain(host, domain string) bool {
	return strings.HasSuffix(host, "."+domain) && net.ParseIP(host) == nil
}

// isSecure reports whether nobody else reads what is sent to a URL.
func isSecure(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// withCookies adds the cookies for the server to those that the user has typed.
func (a *attempt) withCookies(h wireRequest) wireRequest {
	if a.cookies == nil {
		return h
	}
	var pairs []string
	for _, c := range a.cookies.forURL(h.url, time.Now()) {
		pairs = append(pairs, c.name+"="+c.value)
		a.refs.HideAs(request.Masked, c.value)
	}
	if typed := request.Value(h.header, "Cookie"); typed != "" {
		pairs = append(pairs, typed)
	}
	if len(pairs) > 0 {
		h.header = h.header.Clone()
		request.Remove(h.header, "Cookie")
		h.header["Cookie"] = []string{strings.Join(pairs, "; ")}
	}
	return h
}

// saveCookies writes the file of --cookie-jar after an attempt, so that a resume finds them. A new file is readable by
// nobody else.
func (a *attempt) saveCookies() {
	path := a.request.CookieJar
	if a.cookies == nil || path == "" || a.reply.status == 0 {
		return
	}
	var text bytes.Buffer
	text.WriteString("# Netscape HTTP Cookie File\n# https://curl.se/docs/http-cookies.html\n\n")
	for _, c := range *a.cookies {
		text.WriteString(c.line())
	}
	if file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_ = file.Close()
	}
	if err := files.Replace(path, text.Bytes()); err != nil {
		fmt.Fprintf(a.Output.Stderr, "retry: warning: the cookies are not kept: %v\n", err)
	}
}
