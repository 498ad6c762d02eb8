package Reference::Citus;

# docs/scale-out-functions.md: the functions of pulse_citus, as sql/citus declares them. No server
# is asked: few have Citus.
use strict;
use warnings;
use utf8;
use Reference::Functions;
use Reference::Markdown qw(sentence mark);

# The texts of sql/citus, in the order of the page.
sub page {
    my (@texts) = @_;
    my %comments = map { comments($_) } @texts;
    my @functions = map { functions($_) } @texts;
    return join "\n", mark(), "# Functions of `pulse_citus`\n", <<'TEXT',
The functions of a [cluster of Citus](scale-out.md). Each has the name of a function of
[`pulse`](functions.md) where there is one, and a role may call the functions that its kind may call
there. Every producer, caller, worker, operator and observer may call `node_of`; `colocate`,
`uncolocate`, `grant` and `revoke` are for the owner of the extension. A function with a `shard_key`
exists for keys of types `text`, `bigint` and `uuid`. All run with the rights of the caller.
TEXT
      map { part($_, $comments{ $_->{name} }) } @functions;
}

sub functions {
    my ($text) = @_;
    my @functions;
    my $head = qr/^CREATE OR REPLACE FUNCTION pulse_citus\.([a-z]\w+)/m;
    while ($text =~ /$head\((.*?)\)(?:\s+RETURNS (.*?))?\s+LANGUAGE/gs) {
        my ($name, $arguments, $result) = ($1, $2, $3 // '');
        s/\s+/ /g for $arguments, $result;
        push @functions, { schema => 'pulse_citus', name => $name,
            arguments => $arguments =~ s/\@KEY\@/text/r =~ s/ = / DEFAULT /gr =~ s/^ //r,
            result => $result =~ s/^TABLE \(/TABLE(/r };
    }
    return @functions;
}

# Name and comment of each function.
sub comments {
    my ($text) = @_;
    my %comments;
    my $head = qr/^COMMENT ON FUNCTION pulse_citus\.([a-z]\w+)\([^)]*\) IS/m;
    while ($text =~ /$head((?:\s+'[^\n]*')+);/g) {
        my ($name, $said) = ($1, $2);
        $comments{$name} = join('', $said =~ /'((?:[^']|'')*)'/g) =~ s/''/'/gr;
    }
    return %comments;
}

sub part {
    my ($function, $comment) = @_;
    die "generate: $function->{name}() has no comment\n" if !defined $comment;
    return "## $function->{name}\n",
      "```text\n" . Reference::Functions::signature($function) . "```\n", sentence($comment) . "\n";
}

1;
