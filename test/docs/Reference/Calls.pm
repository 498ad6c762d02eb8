package Reference::Calls;

# What libraries know of the functions of the schema: arguments and results, each by its type, and
# the statement's parts that depend on types. The languages' modules write them down.
use strict;
use warnings;
use utf8;
use Exporter qw(import);
use Reference::Functions;
use Reference::Markdown qw(type_name);

our @EXPORT_OK = qw(calls row_types enums camel_case as_text may_give_none);

# Headings of test/docs/groups whose functions an application calls. Those of workers are called by
# pulse-worker, and by the job that a handler gets.
my %offered = map { $_ => 1 } 'Producers', 'Callers', 'Schedules', 'Operators';

# Types that drivers read into something inexact, or of their own: these are asked for as text.
my $read_as_text = qr/^(?:bigint|interval|regprocedure|"char"|pulse\.\w+)(?:\[\])?$/;

# Columns that the extension keeps for itself in rows that applications read.
my %inner = map { $_ => 1 } qw(claimed_live_us activity_live_us superseded in_place waits_on
  key_is_undecided running_worker_id index_lane succession keeps_result);

sub camel_case { return $_[0] =~ s/_([a-z])/\U$1/gr }

sub as_text {
    my ($type) = @_;
    return $type =~ $read_as_text ? ($type =~ /\[\]$/ ? 'text[]' : 'text') : undef;
}

# Whether the call gives no row now and then.
sub may_give_none {
    my ($call) = @_;
    return $call->{gives} eq 'row' && $call->{name} !~ /^(?:add_|schedule$|set_)/;
}

# Functions in the order of the page: name, comment, arguments, `gives` (row, rows, value, values or
# nothing) and the columns or the type of what comes back.
sub calls {
    my ($catalogue, $groups) = @_;
    my %function = map { $_->{name} => $_ } @{ $catalogue->{functions} };
    my @names = map { @{ $_->{functions} } } grep { $offered{ $_->{name} } }
      Reference::Functions::read_groups($groups);
    return map { call($catalogue, $function{$_}) } @names;
}

sub call {
    my ($catalogue, $function) = @_;
    my @all = map { argument($_) } Reference::Functions::split_list($function->{arguments});
    my @takes = grep { $_->{mode} eq 'IN' } @all;
    my @out = grep { $_->{mode} ne 'IN' } @all;
    my %call = (
        name => $function->{name}, comment => $function->{comment}, takes => \@takes,
        is_procedure => $function->{is_procedure} ? 1 : 0,
        given => given(@takes));
    my $result = type_name($function->{result} // '');
    my $several = $result =~ s/^SETOF // || $result =~ /^TABLE/;
    if (my ($list) = $result =~ /^TABLE\((.*)\)$/) {
        @out = map { argument($_) } Reference::Functions::split_list($list);
    }
    my $row = $result =~ /^pulse\.(\w+)$/ && row_type($catalogue, $1) ? $1 : undef;
    if ($row) { @call{qw(gives row)} = ($several ? 'rows' : 'row', $row) }
    elsif ($call{is_procedure} || @out == 1) { @call{qw(gives type)} = ('value', $out[0]{type}) }
    elsif (@out) { @call{qw(gives columns)} = ($several ? 'rows' : 'row', \@out) }
    elsif ($result eq 'void') { $call{gives} = 'nothing' }
    else { @call{qw(gives type)} = ($several ? 'values' : 'value', $result) }
    return \%call;
}

sub argument {
    my ($text) = @_;
    my ($mode, $name, $type, $default) =
      $text =~ /^(?:(IN|OUT|INOUT) )?(\w+) (.*?)(?: DEFAULT (.*))?$/s
      or die "generate: no argument of a function: $text\n";
    return { mode => $mode // 'IN', name => $name, type => type_name($type),
        is_optional => defined $default ? 1 : 0 };
}

# The arguments that stand in order before the options: those that must be given, and the payload
# where it comes next.
sub given {
    my @given;
    for my $argument (@_) {
        last if $argument->{is_optional} && $argument->{name} ne 'payload';
        push @given, $argument->{name};
        last if $argument->{is_optional};
    }
    return \@given;
}

# The columns of a table or a composite type of the schema.
sub row_type {
    my ($catalogue, $name) = @_;
    my ($found) = grep { $_->{name} eq $name && $_->{columns} }
      @{ $catalogue->{relations} }, @{ $catalogue->{types} };
    return $found && [map { { name => $_->{name}, type => type_name($_->{type}),
            comment => $_->{comment} } } grep { !$inner{ $_->{name} } } @{ $found->{columns} }];
}

# The rows that these calls give, by name.
sub row_types {
    my ($catalogue, @calls) = @_;
    return map { ($_, row_type($catalogue, $_)) } map { $_->{row} // () } @calls;
}

sub enums {
    my ($catalogue) = @_;
    return map { ("pulse.$_->{name}", $_->{labels}) }
      grep { $_->{labels} } @{ $catalogue->{types} };
}

1;
