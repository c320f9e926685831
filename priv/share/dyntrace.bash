# Bash completion for dyntrace: commands, options and their values, scripts, nodes.

_dyntrace()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words

    if [ "$COMP_CWORD" = 1 ]; then
        words='load nodes profile record relay report request run snapshot top unload view --help --version'
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
        return
    fi
    case $command:$before in
        record:--keep) return ;;
    esac
    case $before in
        -o | --output | --keep) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
        --what) mapfile -t COMPREPLY < <(compgen -W 'calls waits' -- "$word"); return ;;
        --by) mapfile -t COMPREPLY < <(compgen -W 'process initial none' -- "$word"); return ;;
        --contents) mapfile -t COMPREPLY < <(compgen -W 'shape full' -- "$word"); return ;;
        --waiting | --text | --messages) mapfile -t COMPREPLY < <(compgen -W 'yes no' -- "$word"); return ;;
        --sort)
            words='reductions queue memory growth run io sent received gc gcs'
            mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
            return
            ;;
        --when)
            words='crash error long_gc long_schedule long_queue busy_port mark:'
            mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
            return
            ;;
        --events)
            mapfile -t COMPREPLY < <(compgen -W 'all scheduling port_scheduling messages sends receives calls gc
                                                 ports drivers files requests annotations counters samples
                                                 log vm memory' -- "$word")
            return ;;
    esac
    case $command in
        nodes) words='--json' ;;
        top) words='--seconds --sort --rows --exact' ;;
        profile) words='--seconds --hz --process --output' ;;
        report) words='--seconds --events --functions --output --contents --load --keep' ;;
        request) words='--next --seconds' ;;
        record)
            words='--seconds --snapshot --when --at-most --keep --detach --events --functions --to --output
                   --quiet' ;;
        relay) words='--output --listen --port' ;;
        run) words='--seconds' ;;
        snapshot) words='--list --output --ssh' ;;
        view)
            words='--output --no-clock-correction --process --label --from --to --limit --what --by --top --title
                   --rows --intervals --messages --waiting --text --contents' ;;
        *) words= ;;
    esac
    case $word:$command in
        -*) ;;
        *:view) mapfile -t COMPREPLY < <(compgen -d -- "$word"); return ;;
        *:run) [ "$COMP_CWORD" -gt 2 ] || words=$(dyntrace run 2>/dev/null | cut -d' ' -f1) ;;
    esac
    case $word:$command:$COMP_CWORD in
        -* | *:nodes:* | *:relay:* | *:run:2) ;;
        *:snapshot:*) mapfile -t COMPREPLY < <(compgen -A hostname -- "$word"); return ;;
        *) words="$words $(dyntrace nodes 2>/dev/null | awk 'NR > 1 && $1 + 0 { print $1 }')" ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words --help" -- "$word")
}

complete -F _dyntrace dyntrace
