# Reads the records of dtrace.def, "provider name(types);". Writes the providers in the language of `dtrace -h`.
# With -v names=1: maps each macro that `dtrace -h` generates, such as ERLANG_MESSAGE_SEND, to the name that dtrace.c
# uses, such as FIRE_erlang_message__send. The C preprocessor cannot convert one into the other.

BEGIN { RS = ";" }

{
    gsub(/[ \t\r\n]+/, " ")
    gsub(/ ,/, ",")
    sub(/^ /, "")
}

$0 == "" { next }

{
    records++
    provider = $1
    name = $2
    sub(/\(.*/, "", name)
    if (!(provider in probes))
        order[++providers] = provider
    probes[provider] = probes[provider] "    probe " substr($0, length(provider) + 2) ";\n"
}

names {
    macro = name
    gsub(/__/, "_", macro)
    macro = toupper(provider "_" macro)
    print "#define FIRE_" provider "_" name " " macro
    print "#define ENABLED_" provider "_" name " " macro "_ENABLED"
}

END {
    if (!records)
        exit 1
    for (i = 1; i <= providers && !names; i++)
        printf "provider %s {\n%s};\n", order[i], probes[order[i]]
}
