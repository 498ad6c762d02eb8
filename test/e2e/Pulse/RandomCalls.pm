# Random statements for a role: calls of functions with arguments of their types, and reads.
package Pulse::RandomCalls;

use strict;
use warnings FATAL => 'all';

use Pulse::Server;

# Of what a role calls, so much is what it may call.
use constant { FITTING => 0.85, READS => 0.12, NULLS => 0.12, OPTIONS => 0.35 };
# Those that wait are called less often.
my %weight =
  (wait_for_job => 0.1, wait_for_end => 0.1, verify => 0.2, tick => 0.3, run_tick => 0.3);

sub rows_of {
    my ($node, $query) = @_;
    return map { [ split /\|/, $_, -1 ] } split /\n/, value($node, $query);
}

sub new {
    my ($class, $node, $role) = @_;
    # The arguments with a default are the last.
    my @routines = rows_of($node, qq{SELECT p.oid::regproc, p.proname, p.prokind, p.pronargs,
          p.pronargdefaults,
          coalesce((SELECT string_agg(format_type(t.type, NULL), ';' ORDER BY t.n)
            FROM unnest(p.proargtypes) WITH ORDINALITY AS t (type, n)), ''),
          coalesce(array_to_string(p.proargnames, ';', ''), ''),
          has_function_privilege('$role', p.oid, 'EXECUTE')
        FROM pg_proc AS p WHERE p.pronamespace IN ('pulse'::regnamespace,
            'pulse_internal'::regnamespace)
         AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
         AND p.prokind <> 'a'
         AND NOT 'internal'::regtype = ANY (p.proargtypes)});
    my @relations = rows_of($node, qq{SELECT c.oid::regclass,
          has_table_privilege('$role', c.oid, 'SELECT')
        FROM pg_class AS c WHERE c.relkind IN ('r', 'v')
         AND c.relnamespace IN ('pulse'::regnamespace, 'pulse_internal'::regnamespace)});
    my $self = bless {
        may_tokens => $role =~ /worker|operator/ ? 1 : 0,
        all => \@routines,
        fitting => [ grep { $_->[7] eq 't' } @routines ],
        relations => [ map { $_->[0] } @relations ],
        readable => [ map { $_->[0] } grep { $_->[1] eq 't' } @relations ] }, $class;
    return $self;
}

# Ids and names that there are now.
sub learn {
    my ($self, $owner) = @_;
    my %of = (
        job => 'SELECT id FROM pulse.job UNION ALL SELECT id FROM pulse.finished_job',
        worker => 'SELECT id FROM pulse.worker', flow => 'SELECT id FROM pulse.flow',
        operation => 'SELECT id FROM pulse.operation',
        token => 'SELECT token FROM pulse.job WHERE token IS NOT NULL');
    for my $what (sort keys %of) {
        my $ids = $owner->query("SELECT string_agg(i::text, ' ')
            FROM (SELECT * FROM ($of{$what}) AS i (i) ORDER BY random() LIMIT 20) AS i");
        $self->{ids}{$what} = [ split ' ', $ids ];
    }
    $self->{ids}{planted} = [ split ' ',
        $owner->query(q{SELECT string_agg(id::text, ' ') FROM planted}) ];
    return;
}

sub one { return $_[ rand @_ ] }

my @numbers = (0, 1, -1, 2, 7, 100, 1000, 32767, 32768, -32769, 2147483647, -2147483648);
my @big = (@numbers, '9223372036854775807', '-9223372036854775808', '1099511627776');
my @texts = ('', ' ', 'mail', 'planted', 'post', 'post/north', 'held', 'line', 'hourly', 'stranger',
    'stranger key', 'running key', 'waiting key', 'ann', 'bob', 'replace', 'unsafe_dedupe',
    'preserve_run_at', 'completed', 'ended', 'failed', 'retry', 'cancel', 'reschedule', 'skip',
    'all', 'once', 'task', 'queue', 'minute', '@daily', '0 3 * * *', '* * * * * *', 'UTC',
    'Europe/Berlin', 'a/b/c/d/e/f', '*', 'post/*', '%', '_', q{'}, q{"}, '\\', "\n", "\x7f",
    'x' x 129, 'x' x 600, '$1', '{}', 'NULL', "\xc3\xa4\xe2\x80\xae",
    q{'; DROP TABLE pulse.job; --}, 'public.handle(json)');
my @keys = ('stranger key', 'running key', 'waiting key', 'undecided key', 'own key');
my @documents = ('null', '{}', '[]', '"x"', '1e400', '[[[[[]]]]]', '{"ids": 1}', '{"task": "mail"}',
    '{"queue": "post"}', '{"a": null, "a": 1}', '[{"key": "a", "identifier": "mail"}]',
    '[{"identifier": "mail", "after": ["a"]}]',
    '[{"name": "x", "identifier": "mail", "cron": "@daily"}]', '"\u0000"',
    '[' x 300 . ']' x 300, '{"reason": "x"}', '{"priority": 1}', '{"run_at": "infinity"}');
my @intervals = ('0', '1 s', '-1 s', '1 us', '1 day', '1 mon', '178000000 years', '10 ms');
my @times = ('now', 'infinity', '-infinity', '4714-11-24 00:00Z BC', '294276-12-31 23:59Z',
    '2000-01-01', 'tomorrow');

sub quoted { my ($text) = @_; $text =~ s/'/''/g; return "'$text'" }

# A number that means something to a function: an id of what its argument is named for.
sub id_for {
    my ($self, $name) = @_;
    my ($what) = $name =~ /(worker|flow|operation|token)/;
    $what = 'job' if !defined $what || $what eq 'token' && !$self->{may_tokens};
    my $ids = $self->{ids}{ rand() < 0.3 && $what eq 'job' ? 'planted' : $what };
    return @{$ids} ? one(@{$ids}) : 1;
}

sub scalar_of {
    my ($self, $type, $name) = @_;
    return rand() < 0.7 ? $self->id_for($name) : one(@big) if $type eq 'bigint';
    return one(@numbers) if $type eq 'integer';
    return one(grep { abs $_ < 32768 } @numbers) if $type eq 'smallint';
    return quoted(one(@keys)) if $type eq 'text' && $name =~ /key$/ && rand() < 0.5;
    return quoted(one(@texts)) if $type =~ /^(?:text|name|"char")$/;
    return quoted(one(@documents)) if $type =~ /^jsonb?$/;
    return quoted(one(@intervals)) if $type eq 'interval';
    return quoted(one(@times)) if $type =~ /^timestamp/;
    return one('true', 'false') if $type eq 'boolean';
    return quoted(one(0, -1, 0.5, 1, 2, 'NaN', 'Infinity', 1e-300)) if $type =~ /^double/;
    return quoted(one('scratch', 'a_producer', 'public', 'nobody')) if $type eq 'regrole';
    return quoted(one('public.handle(json)', 'pg_catalog.json_typeof(json)', 'json_in(cstring)'))
      if $type eq 'regprocedure';
    return quoted(one('pulse.job', 'pg_class')) if $type eq 'regclass';
    return quoted(one(qw(completed failed cancelled))) if $type eq 'pulse.finished_state';
    return quoted(one('(mail,[1],,,,,,)', '(,,,,,,,)', '(planted,{},post,,1,stranger key,1,{f})',
        '("",,,infinity,0,"",99999,)')) if $type eq 'pulse.job_spec';
    return "(SELECT NULL::$type OFFSET 0)";
}

sub value_of {
    my ($self, $type, $name) = @_;
    my ($element) = $type =~ /^(.*)\[\]$/;
    # A constant would let the planner answer for a function that is strict.
    return "(SELECT NULL::$type OFFSET 0)" if rand() < NULLS;
    return $self->scalar_of($type, $name) . "::$type" if !defined $element;
    my $kind = rand();
    return quoted('{}') . "::$type" if $kind < 0.08;
    # Of two dimensions, and with a lower bound of its own.
    my @values =
      map { rand() < NULLS ? 'NULL' : $self->scalar_of($element, $name) } 1 .. (1 + rand 4);
    return "ARRAY[ARRAY[" . join(',', @values) . "]]::$type" . '[]' if $kind < 0.13;
    @values = (@values) x 50 if $kind > 0.97;
    return 'ARRAY[' . join(',', @values) . "]::$type";
}

sub call_of {
    my ($self, $routine) = @_;
    my ($name, undef, $kind, $count, $defaults, $types, $names) = @{$routine};
    my @types = split /;/, $types;
    my @names = split /;/, $names, -1;
    my @arguments;
    for my $i (0 .. $#types) {
        my $value = $self->value_of($types[$i], $names[$i] // '');
        # CALL takes no subquery.
        $value =~ s/^\(SELECT (NULL::.*) OFFSET 0\)$/$1/ if $kind eq 'p';
        if ($i < $count - $defaults) { push @arguments, $value }
        elsif (rand() < OPTIONS) { push @arguments, qq{"$names[$i]" => $value} }
    }
    my $call = "$name(" . join(', ', @arguments) . ')';
    return "CALL $call" if $kind eq 'p';
    return "SELECT * FROM $call AS r";
}

sub statement {
    my ($self, $kind) = @_;
    if (rand() < READS) {
        my @fitting = rand() < FITTING ? @{ $self->{readable} } : ();
        return 'SELECT * FROM ' . one(@fitting ? @fitting : @{ $self->{relations} });
    }
    my @from = rand() < FITTING ? @{ $self->{fitting} } : ();
    @from = @{ $self->{all} } if !@from;
    my $routine = one(@from);
    $routine = one(@from) while rand() > ($weight{ $routine->[1] } // 1);
    return $self->call_of($routine);
}

1;
