_metaslot() {
    # Bash ends words at ':' and '=', which types of keys and long options have within: they are joined again.
    local words=() word joins='' at
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if ((at > 0)) && [[ $joins || $word == [:=]* ]]; then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        joins=''
        if ((at > 0)) && [[ $word == *[:=] ]]; then joins=yes; fi
    done
    local current=${words[${#words[@]} - 1]}
    local before=${current%"${current##*[:=]}"}
    mapfile -t COMPREPLY < <(METASLOT_COMPLETE=bash _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) metaslot -- "${words[@]}" 2> /dev/null)
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    # An empty word says that a file is wanted. Bash offers files itself, and quotes their names.
    for word in "${COMPREPLY[@]}"; do
        if [[ ! $word ]]; then COMPREPLY=(); fi
    done
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2> /dev/null; fi
}
complete -o bashdefault -o default -F _metaslot metaslot
