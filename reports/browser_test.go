package reports

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"misroute/pipeline/result"
)

// browser starts a headless Chromium, where the test run asks for one.
func browser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	switch {
	case os.Getenv("MISROUTE_BROWSER") != "1" && os.Getenv("MISROUTE_LONG") != "1":
		t.Skip("set MISROUTE_BROWSER=1 to look at pages in Chromium")
	case path == "" && os.Getenv("MISROUTE_BROWSER") == "1":
		t.Fatal("MISROUTE_BROWSER=1, but no chromium in the path")
	case path == "":
		t.Skip("no chromium in the path")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("hide-scrollbars", true))
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 8*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// seen is what a browser told about a page.
type seen struct {
	sync.Mutex
	requests, violations []string
}

// pagesToLookAt are the reports that the browser tests open.
func pagesToLookAt(t *testing.T) map[string][]byte {
	t.Helper()
	nasty := crumbSweep(2, 400)
	for i := range nasty.Rows {
		r := &nasty.Rows[i]
		r.MessageID, r.Subject, r.Text = hostile[i%len(hostile)], hostile[(i+1)%len(hostile)], strings.Join(hostile, "\n")
		r.Label = map[string]string{"refunds": hostile[0], "wholesale": hostile[7]}[r.Label] + r.Label
	}
	ledger(nasty)
	pages := map[string][]byte{}
	for name, f := range map[string]*result.Folder{"weekly": crumb(1, 310), "sweep": crumbSweep(1, 310), "hostile": nasty} {
		var b bytes.Buffer
		if err := weekly(t, f, Options{WithText: name == "hostile", Threshold: 0.75, Examples: 20}).HTML(&b); err != nil {
			t.Fatal(err)
		}
		pages[name] = b.Bytes()
	}
	comparedPages(t, pages, nasty)
	return pages
}

func TestPagesInABrowser(t *testing.T) {
	ctx := browser(t)
	pages := pagesToLookAt(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(pages[strings.TrimPrefix(r.URL.Path, "/")])
	}))
	defer server.Close()
	told := &seen{}
	if err := chromedp.Listen(ctx, func(event any) {
		told.Lock()
		defer told.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			told.requests = append(told.requests, e.Request.URL)
		case *runtime.EventConsoleAPICalled:
			told.violations = append(told.violations, fmt.Sprint("console: ", e.Type))
		case *runtime.EventExceptionThrown:
			told.violations = append(told.violations, "exception: "+e.ExceptionDetails.Text)
		case *cdpage.EventJavascriptDialogOpening:
			told.violations = append(told.violations, "dialog: "+e.Message)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for name := range pages {
		for _, width := range []int64{360, 1280} {
			for _, scheme := range []string{"light", "dark"} {
				what := fmt.Sprintf("%s %d %s", name, width, scheme)
				look(t, ctx, server.URL+"/"+name, what, width, scheme)
			}
		}
		look(t, ctx, server.URL+"/"+name, name+" 720 paper", 720, "paper") // A4 less its margins
	}
	for _, url := range told.requests {
		if !strings.HasPrefix(url, server.URL+"/") || strings.Count(url, "/") > 3 {
			t.Errorf("the page asked for %s", url)
		}
	}
	for _, v := range told.violations {
		t.Error(v)
	}
}

// look opens a page at a width and checks what only a browser knows.
func look(t *testing.T, ctx context.Context, url, what string, width int64, scheme string) {
	t.Helper()
	ask := func(expression string) []string {
		list, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](expression))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return list
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if scheme == "paper" {
		media = emulation.SetEmulatedMediaParams{Media: "print"}
	}
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media)
	if err == nil {
		err = chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(url))
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	wide := ask(`document.documentElement.scrollWidth > innerWidth ? ["page "+document.documentElement.scrollWidth] : []`)
	overflow := ask(`[...document.querySelectorAll("body *")].filter(e => !e.closest(".scroll,svg") && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName+"."+e.className+" "+e.textContent.slice(0,40))`)
	unreachable := ask(`[...document.querySelectorAll(".scroll")].filter(e => e.tabIndex !== 0 || !e.getAttribute("aria-label")).map(e => e.textContent.slice(0,40))`)
	tiny, faint := ask(tinyText), ask(faintText)
	for problem, list := range map[string][]string{"scrolls sideways": wide, "stands out on the right": overflow, "is out of the keyboard's reach": unreachable, "is under 11 px": tiny, "has too little contrast": faint} {
		for i, s := range list {
			if i == 5 {
				t.Errorf("%s: and %d more", what, len(list)-i)
				break
			}
			t.Errorf("%s: %s: %s", what, problem, s)
		}
	}
	if dir := os.Getenv("MISROUTE_LOOK"); dir != "" {
		shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(90))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(what, " ", "-")+".jpg"), shot, 0o644); err != nil {
			t.Error(err)
		}
	}
}

// tinyText lists drawn text whose size on the screen is under 11 pixels.
const tinyText = `[...document.querySelectorAll("svg text, td, th, p, li, small, span, dd, dt, figcaption")].filter(e => e.getClientRects().length && e.textContent.trim()).map(e => {
	let size = parseFloat(getComputedStyle(e).fontSize);
	if (e.ownerSVGElement) size *= e.ownerSVGElement.getBoundingClientRect().width / e.ownerSVGElement.viewBox.baseVal.width;
	return size < 11 ? e.textContent.trim().slice(0,40) + " " + size.toFixed(1) : null}).filter(Boolean)`

// faintText lists text below the contrast of WCAG 2.1 AA against what is painted behind it.
const faintText = `(() => {
	const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const seen = {};
	const rgba = c => seen[c] ??= look(c), look = c => { paint.clearRect(0,0,1,1); paint.fillStyle = c; paint.fillRect(0,0,1,1); return [...paint.getImageData(0,0,1,1).data] };
	const lum = c => { const f = c.slice(0,3).map(v => { v /= 255; return v <= .03928 ? v/12.92 : ((v+.055)/1.055)**2.4 }); return .2126*f[0]+.7152*f[1]+.0722*f[2] };
	const over = (a, b) => { const k = a[3]/255; return [0,1,2].map(i => a[i]*k + b[i]*(1-k)).concat(255) };
	const behind = e => { const stack = []; for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3]) stack.push(c); if (c[3] === 255) break } let base = [255,255,255,255]; for (const c of stack.reverse()) base = over(c, base); return base };
	const out = [];
	for (const e of document.querySelectorAll("body *")) {
		if (!e.getClientRects().length || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
		const s = getComputedStyle(e), svg = e.ownerSVGElement;
		const back = behind(e), ink = over(rgba(svg ? s.fill : s.color), back);
		const a = lum(ink), b = lum(back), ratio = (Math.max(a,b)+.05)/(Math.min(a,b)+.05);
		const large = parseFloat(s.fontSize) >= 24 || parseFloat(s.fontSize) >= 18.66 && s.fontWeight >= 700;
		if (ratio < (large ? 3 : 4.5) - 0.005) out.push(e.textContent.trim().slice(0,40) + " " + ratio.toFixed(2) + " " + (e.className.baseVal ?? e.className));
	}
	return out })()`
