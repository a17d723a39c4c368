package evaluation

import (
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"misroute/tokenize/window"
)

// RouterFlags choose the router and how much of a message it reads.
func RouterFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Category: "Router:", Usage: "model folder `DIR` (config.json, model.safetensors, tokenizer.json), or the URL of a deployed router (http://host/predict)"},
		&cli.BoolFlag{Name: "as-routed", Category: "Router:", Usage: "judge the deployed router's own decisions instead of a model (see --routed-header)"},
		&cli.BoolFlag{Name: "int8", Category: "Router:", Usage: "8-bit weights: faster, and not the same logits; never chosen silently"},
		&cli.BoolFlag{Name: "literal-specials", Category: "Router:", Usage: `read "[SEP]" and the like in a message as text, not as special tokens`},
		&cli.StringFlag{Name: "tokenizer", Category: "Deployed router:", Usage: "its tokenizer.json `FILE`, so that messages can be cut here; else its own cut holds"},
		&cli.StringFlag{Name: "queues", Category: "Deployed router:", Usage: "its queues in the order of its outputs, `A,B,C`, if it answers without labels"},
		&cli.DurationFlag{Name: "http-timeout", Category: "Deployed router:", Value: 30 * time.Second, Usage: "longest wait for one answer"},
		&cli.IntFlag{Name: "http-retries", Category: "Deployed router:", Value: 4, Usage: "further attempts when it is busy or unreachable"},
		&cli.StringFlag{Name: "cap", Category: "Truncation:", Value: strconv.Itoa(DefaultCap), Usage: "most tokens the router reads of a message, specials included; none: no cap"},
		&cli.StringFlag{Name: "strategy", Category: "Truncation:", Value: window.KeepHead.String(), Usage: "which tokens are kept over the cap: head, tail, head+tail, windows, smart"},
		&cli.IntFlag{Name: "head-tokens", Category: "Truncation:", Usage: "head+tail: tokens kept from the start", DefaultText: "a quarter"},
		&cli.IntFlag{Name: "overlap", Category: "Truncation:", Usage: "windows: tokens that neighbouring windows share"},
		&cli.StringFlag{Name: "aggregate", Category: "Truncation:", Value: window.AggregateMean.String(), Usage: "windows: how their logits become one: mean, max, first, length"},
	}
}

// RowFlags say what else is read and stored of every message.
func RowFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "no-whole", Category: "Run:", Usage: "do not read cut messages whole: faster, and the report cannot say what the cut cost"},
		&cli.IntFlag{Name: "control", Category: "Run:", Value: 10, Usage: "reread one in `N` uncut messages as a control (0: none)"},
		&cli.Uint64Flag{Name: "seed", Category: "Run:", Value: 1, Usage: "seed of everything random"},
		&cli.BoolFlag{Name: "with-text", Category: "Run:", Usage: "store subjects and texts in the run folder, and show them in the report"},
	}
}
