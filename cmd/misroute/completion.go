package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"
)

// The shells ask the program itself what can follow: `misroute WORDS --generate-bash-completion`.
const bashCompletion = `# misroute: completion for bash. Use: source <(misroute completion bash)
_misroute() {
  local cur words
  cur="${COMP_WORDS[COMP_CWORD]}"
  words=("${COMP_WORDS[@]:0:COMP_CWORD}")
  if [[ "$cur" == -* ]]; then words+=("$cur"); fi
  COMPREPLY=($(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$cur"))
}
complete -o bashdefault -o default -F _misroute misroute
`

const zshCompletion = `#compdef misroute
# misroute: completion for zsh. Use: source <(misroute completion zsh)
_misroute() {
  local -a options
  local cur=${words[-1]}
  if [[ "$cur" == -* ]]; then
    options=("${(@f)$(${words[@]:0:#words[@]-1} ${cur} --generate-bash-completion 2>/dev/null)}")
  else
    options=("${(@f)$(${words[@]:0:#words[@]-1} --generate-bash-completion 2>/dev/null)}")
  fi
  if [[ -n "${options[1]}" ]]; then _describe 'values' options; fi
  _files
}
compdef _misroute misroute
`

// CompletionCommand prints what a shell needs to complete verbs and flags.
func CompletionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the completion of a shell: bash, zsh, fish",
		ArgsUsage: "SHELL",
		Description: "Examples:\n" +
			"  source <(misroute completion bash)\n" +
			"  misroute completion fish > ~/.config/fish/completions/misroute.fish",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("completion: want one shell: bash, zsh or fish")
			}
			return writeCompletion(c.App, c.Args().First(), c.App.Writer)
		},
	}
}

func writeCompletion(app *cli.App, shell string, w io.Writer) error {
	script := ""
	switch shell {
	case "bash":
		script = bashCompletion
	case "zsh":
		script = zshCompletion
	case "fish":
		var err error
		if script, err = app.ToFishCompletion(); err != nil {
			return err
		}
	default:
		return usagef("completion: %q: want bash, zsh or fish", shell)
	}
	_, err := io.WriteString(w, script)
	return err
}

// ManCommand prints the manual page.
func ManCommand() *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page, made from the verbs",
		Description: "Example:\n  misroute man > /usr/local/share/man/man1/misroute.1",
		Action: func(c *cli.Context) error {
			page, err := c.App.ToManWithSection(1)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.App.Writer, page)
			return err
		},
	}
}
