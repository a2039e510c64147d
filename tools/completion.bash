# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154

# The command whose options a command has.
_sampleprof_command_of()
{
	case "$_sampleprof_pages " in
	*" $1 "*) echo report ;;
	*) echo "$1" ;;
	esac
}

# What stands before the cursor: the command, the number of its words, the
# option whose value comes next, whether another option may come; and which
# commands there are.
_sampleprof_parse()
{
	local i word is_first=1

	case ${COMP_WORDS[0]##*/} in
	sampleprof-report) command=report commands=$_sampleprof_reading ;;
	sampleprof-lab) command=lab commands='' ;;
	*) command='' commands=$_sampleprof_commands ;;
	esac
	count=0 option='' is_open=1
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		# bash takes --option=value for three words.
		[ "$word" = = ] && continue
		if [ -n "$option" ]; then
			option=''
			continue
		fi
		if [ -n "$is_open" ] && [ "$word" = -- ]; then
			is_open=''
		elif [ -n "$is_open" ] && [ "${word#-}" != "$word" ]; then
			case $word in
			-?) ;;
			*) word=${word#-} word=--${word#-} ;;
			esac
			_sampleprof_table "$command $word"
			[ -n "$takes" ] && option=$word
		elif [ -n "$is_first" ] && [[ " $commands " = *" $word "* ]]; then
			command=$(_sampleprof_command_of "$word") is_first=''
		else
			count=$((count + 1)) is_first=''
			# What follows is another program's.
			[ "$command" = run ] && is_open=''
		fi
	done
}

# The words of a list; where there is none, readline completes a file.
_sampleprof()
{
	local cur=${COMP_WORDS[COMP_CWORD]}
	local command commands count option is_open words takes

	[ "$cur" = = ] && cur=''
	_sampleprof_parse
	if [ -n "$option" ]; then
		_sampleprof_table "$command $option"
	elif [ -n "$is_open" ] && [ "${cur#-}" != "$cur" ]; then
		[ "$cur" = - ] && cur=--
		_sampleprof_table "$command"
	elif [ "$command" = run ] && [ "$count" -eq 0 ]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
		return
	elif [ "$command" = help ]; then
		words=$_sampleprof_commands
	elif [ "$COMP_CWORD" -eq 1 ] && [ -n "$commands" ]; then
		words=$commands
	else
		_sampleprof_table "$command $((count + 1))"
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	# A file may stand there as well.
	if [ "$command" = report ] && [ "$COMP_CWORD" -eq 1 ]; then
		compopt -o filenames 2>/dev/null
		mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY \
			< <(compgen -f -- "$cur")
	elif [ -n "$words" ]; then
		compopt +o bashdefault +o default 2>/dev/null
	fi
}

complete -o bashdefault -o default -F _sampleprof \
	sampleprof sampleprof-report sampleprof-lab
