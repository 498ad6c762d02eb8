# Completion of pulse for bash. It reads the help of the command that stands there, so it knows what
# this version knows.

_pulse_words() {
    pulse "$@" --help 2>/dev/null | awk '
        /^Subcommands:/ { below = 1; next }
        /^[^ ]/ { below = 0 }
        below && /^  [a-z]/ { print $1 }
        /^  -/ { n = split($1, names, ","); for (i = 1; i <= n; i++) if (names[i] ~ /^--/) print names[i] }'
}

_pulse() {
    local word path=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        # A command below another; what follows an option or is an id ends the search.
        [[ $word == -* || ${#path[@]} -ge 2 ]] && continue
        if _pulse_words "${path[@]}" | grep -qx -- "$word"; then path+=("$word"); fi
    done
    mapfile -t COMPREPLY < <(compgen -W "$(_pulse_words "${path[@]}")" -- "${COMP_WORDS[COMP_CWORD]}")
}

complete -o default -F _pulse pulse
