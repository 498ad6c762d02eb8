package Reference::Functions;

# docs/functions.md: functions in the order of test/docs/groups, then views, tables and types.
use strict;
use warnings;
use utf8;
use Reference::Markdown qw(sentence prose code table mark type_name);

use constant MAX_COLUMNS => 90;

sub page {
    my ($catalogue, $text) = @_;
    my @groups = read_groups($text);
    my %functions;
    push @{ $functions{ $_->{name} } }, $_ for @{ $catalogue->{functions} };
    check_groups(\%functions, @groups);
    my @parts = (introduction(@groups));
    for my $group (@groups) {
        push @parts, "## $group->{name}\n", "$group->{about}\n";
        push @parts, map { function_part($_) } map { @{ $functions{$_} } } @{ $group->{functions} };
    }
    push @parts, "## Views and tables\n";
    push @parts, map { relation_part($_) } relations($catalogue);
    push @parts, "## Types\n", map { type_part($_) } @{ $catalogue->{types} };
    return join "\n", @parts;
}

sub introduction {
    my (@groups) = @_;
    my $toc = join ' · ', map { "[$_](#" . lc(s/ /-/gr) . ')' }
      (map { $_->{name} } @groups), 'Views and tables', 'Types';
    return mark(), "# Functions\n", <<'TEXT', "$toc\n";
What the schema `pulse` offers; `\df+ pulse.add_job` shows one. No program calls what stands in the
schema `pulse_internal`. Nothing is granted to PUBLIC: a role executes what its kind was granted
(`grant_producer`, `grant_worker`, `grant_operator`, `grant_observer`). The owner of the extension
executes everything. A function runs with the rights of that owner (`SECURITY DEFINER`) unless its
entry says `SECURITY INVOKER`.

PostgreSQL calls a function only with arguments of its types: an argument of type `jsonb` needs the
cast `::json`, a `bigint` one `::int`. Without it the server says that the
[function does not exist](errors.md#function-does-not-exist).
TEXT
}

# Heading, what it is about, and names, in the order of the file.
sub read_groups {
    my ($text) = @_;
    my @groups;
    for (split /\n/, $text) {
        next if /^\s*(?:#|$)/;
        if (/^(\w[^:]*):\s+(.*)$/) { push @groups, { name => $1, about => $2, functions => [] } }
        elsif (/^\s+\w/ && @groups) { push @{ $groups[-1]{functions} }, split }
        else { die "generate: test/docs/groups: neither a heading nor names: $_\n" }
    }
    return @groups;
}

sub check_groups {
    my ($functions, @groups) = @_;
    my (%listed, @wrong);
    for my $name (map { @{ $_->{functions} } } @groups) {
        push @wrong, "lists $name twice" if $listed{$name}++;
        push @wrong, "lists $name, which does not exist; take it off" if !$functions->{$name};
    }
    push @wrong, "lists no $_; put it under a heading"
      for grep { !$listed{$_} } sort keys %{$functions};
    die map { "generate: test/docs/groups $_\n" } @wrong if @wrong;
    return;
}

sub function_part {
    my ($function) = @_;
    return "### $function->{name}\n", "```text\n" . signature($function) . "```\n",
      sentence($function->{comment}) . "\n",
      granted($function) . ($function->{runs_as_owner} ? '' : ' `SECURITY INVOKER`.') . "\n";
}

# On one line where it fits, else an argument and a column on each.
sub signature {
    my ($function) = @_;
    my @arguments = map { clean($_) =~ s/^IN //r } split_list($function->{arguments});
    my @columns = map { s/^OUT //r } grep { /^OUT / } @arguments;
    @arguments = grep { !/^OUT / } @arguments;
    my $result = clean($function->{result} // '');
    @columns = split_list($1) if $result =~ /^TABLE\((.*)\)$/;
    my $begin = ($function->{is_procedure} ? 'CALL ' : '')
      . ($function->{schema} // 'pulse') . ".$function->{name}";
    my $arrow = $function->{is_procedure} ? '' : ' → ';
    my $several = $result =~ /^TABLE/ ? 'set of ' : '';
    $result =~ s/^SETOF /set of /;
    my $whole = @columns ? $several . '(' . join(', ', @columns) . ')' : $result;
    $whole = '' if $function->{is_procedure};
    my $line = "$begin(" . join(', ', @arguments) . ")$arrow$whole";
    return "$line\n" if length $line <= MAX_COLUMNS;
    my $head = "$begin(" . join(', ', @arguments) . ")$arrow";
    $head = "$begin(\n" . indented(@arguments) . ")$arrow"
      if length "$head$several(" > MAX_COLUMNS || !@columns;
    return "$head$whole\n" if !@columns || length(last_line($head) . $whole) <= MAX_COLUMNS;
    return "$head$several(\n" . indented(@columns) . ")\n";
}

sub last_line { return (split /\n/, $_[0])[-1] }

sub indented {
    my (@items) = @_;
    return join(",\n", map { "    $_" } @items) . "\n";
}

# A list at its commas, but not inside of parentheses, brackets or quotes.
sub split_list {
    my ($list) = @_;
    my @items = $list =~ /\G\s*((?:[^,'(\[]|'(?:[^']|'')*'|\([^()]*\)|\[[^\]]*\])+),?/g;
    return map { s/\s+$//r } @items;
}

# A default says its type once.
sub clean {
    my ($text) = @_;
    $text =~ s/(NULL|'(?:[^']|'')*')::[a-z_. ]+(?:\[\])*/$1/g;
    return type_name($text);
}

sub granted {
    my ($object) = @_;
    my @kinds = @{ $object->{granted} // [] };
    return 'For the owner of the extension.' if !@kinds;
    return 'For every kind of role.' if @kinds == 4;
    return 'Granted to: ' . join(', ', @kinds) . '.';
}

# Views first.
sub relations {
    my ($catalogue) = @_;
    my @all = @{ $catalogue->{relations} };
    return (grep { $_->{kind} eq 'v' } @all), grep { $_->{kind} ne 'v' } @all;
}

sub relation_part {
    my ($relation) = @_;
    my $kind = $relation->{kind} eq 'v' ? 'view' : 'table';
    my $about = sentence($relation->{comment});
    return "### $relation->{name} ($kind)\n", ("$about\n") x ($about ne ''),
      granted($relation) . "\n", columns($relation);
}

sub columns {
    my ($object) = @_;
    my @columns = @{ $object->{columns} };
    return table(['column', 'type', ''],
        map { [code($_->{name}), type_name($_->{type}), prose($_->{comment} // '')] } @columns)
      if grep { defined $_->{comment} } @columns;
    return table(['column', 'type'], map { [code($_->{name}), type_name($_->{type})] } @columns);
}

sub type_part {
    my ($type) = @_;
    return "### $type->{name} (type)\n", sentence($type->{comment}) . "\n",
      $type->{labels} ? 'One of ' . join(', ', map { code($_) } @{ $type->{labels} }) . ".\n"
      : columns($type);
}

1;
