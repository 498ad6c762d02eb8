# A pulse-worker, and what it says in its log.
package Pulse::Worker;

use strict;
use warnings FATAL => 'all';

use parent 'Pulse::Program';

use JSON::PP qw(decode_json);

use Pulse::Server qw(wait_until);

# `tasks`: its Pulse::Tasks, or `folder`: a folder. `host` and `port`: of a proxy, or of several
# servers, in place of the server's own; `where`: options in place of its --database. `options`:
# more of its command line; `under`: what runs it; `program`: another program that takes these
# options; `level`: of its log; `concurrency`: 1, or undef to leave it to the worker. With neither
# tasks nor folder it runs functions only. Returns at once; see start_registered.
sub start {
    my ($class, $node, $name, %options) = @_;
    my ($host, $port) = ($options{host} // $node->host, $options{port} // $node->port);
    my $database = $options{database} // 'postgres';
    my $folder = $options{folder} // ($options{tasks} ? $options{tasks}->folder : undef);
    my $self = $class->SUPER::start(
        $name,
        [
            @{ $options{under} // [] },
            $options{program} // 'pulse-worker', '--name', $name,
            '--log-format', 'json', '--log-level', $options{level} // 'debug',
            @{ $options{where} // [ '--database', "host=$host port=$port dbname=$database" ] },
            (defined $folder ? ('--tasks', $folder) : ()),
            (exists $options{concurrency} && !defined $options{concurrency}
                ? () : ('--concurrency', $options{concurrency} // 1)),
            @{ $options{options} // [] },
        ],
        output => 'stderr');
    $self->{node} = $node;
    return $self;
}

# Returns once it is registered; its number is in id() then.
sub start_registered {
    my ($class, @arguments) = @_;
    my $self = $class->start(@arguments);
    $self->{id} = $self->wait_for('registered')->{worker};
    return $self;
}

sub id { return $_[0]{id} }

# Under a sanitizer it is slow, and keeps what was freed and shadows of it all.
sub is_sanitized { return $ENV{ASAN_OPTIONS} || $ENV{TSAN_OPTIONS} }

# Waits until it has found nothing to do and waits for a job itself.
sub wait_until_idle {
    my ($self) = @_;
    wait_until($self->{node}, qq{SELECT count(*) = 1 FROM pg_stat_activity
        WHERE application_name = 'pulse-worker $self->{name}' AND state = 'active'
          AND query LIKE 'CALL pulse.wait_for_job%' AND wait_event = 'Extension'},
        "$self->{name} is idle");
    return;
}

# Has it read its databases again, and returns the names of those that it serves then.
sub reload_databases {
    my ($self) = @_;
    my $from = $self->lines->position;
    $self->signal('HUP');
    return $self->wait_for('databases', from => $from)->{names};
}

# Has it end its jobs and leave, and returns its exit code.
sub drain {
    my ($self) = @_;
    $self->signal('TERM');
    return $self->wait_exit;
}

sub _read {
    my ($line) = @_;
    return $line =~ /^\{/ ? decode_json($line) : undef;
}

sub _matcher {
    my ($event, %fields) = @_;
    return sub {
        my ($line) = @_;
        return 0 if $line->{event} ne $event;
        for (keys %fields) { return 0 if ($line->{$_} // '') ne $fields{$_} }
        return 1;
    };
}

# The line of the log that tells of an event with these fields. `from`: only behind this position()
# of lines(); `count`: as many lines.
sub wait_for {
    my ($self, $event, %fields) = @_;
    my %options = map { exists $fields{$_} ? ($_ => delete $fields{$_}) : () } qw(from count);
    my $what = join ' ', "$event of $self->{name}", map { "$_=$fields{$_}" } sort keys %fields;
    return $self->lines->wait_for($what, _matcher($event, %fields), read => \&_read, %options);
}

# The events of this kind that its log has told so far.
sub events {
    my ($self, $event, %fields) = @_;
    my $matches = _matcher($event, %fields);
    return grep { defined && $matches->($_) } map { _read($_) } $self->lines->lines;
}

1;
