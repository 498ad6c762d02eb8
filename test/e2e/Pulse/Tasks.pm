# A folder of tasks. What they tell comes as lines of a file, and where they wait at a gate, a named
# pipe, the test lets them through one by one, so that nobody needs a clock.
package Pulse::Tasks;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use Fcntl qw(O_RDWR);
use POSIX qw(mkfifo);

use PostgreSQL::Test::Utils ();
use Pulse::Lines;
use Pulse::Process;

# What every task can do: tell WORD with who it is, and wait at GATE.
my $preamble = <<'SH';
#!/bin/bash
tell() {
    echo "$1 $PULSE_TASK $PULSE_JOB_ID $PULSE_TOKEN $PULSE_ATTEMPT ${PULSE_RECOVERED:--}" \
        "$BASHPID $EPOCHREALTIME" >>"$told"
}
wait_at() {
    read -r _ <"$gates/$1"
}
# The process of the worker: the parent of the minder, which is the parent of this.
find_worker() {
    while read -r name value _; do
        if [[ $name == PPid: ]]; then worker=$value; fi
    done <"/proc/$PPID/status"
}
SH

my @columns = qw(word task job token attempt recovered pid at);

sub new {
    my ($class, %scripts) = @_;
    my $root = PostgreSQL::Test::Utils::tempdir('tasks');
    my $self = bless { root => $root, gates => {} }, $class;
    mkdir "$root/$_" or croak "$root/$_: $!" for qw(tasks gates);
    $self->{lines} = Pulse::Lines->new("$root/told");
    $self->add($_, $scripts{$_}) for sort keys %scripts;
    return $self;
}

# Open for both, so that neither side ever waits for the other to open it.
sub _open_pipe {
    my ($path) = @_;
    mkfifo($path, 0600) or croak "$path: $!";
    sysopen my $pipe, $path, O_RDWR or croak "$path: $!";
    return $pipe;
}

sub folder { return "$_[0]{root}/tasks" }
sub lines { return $_[0]{lines} }

# A task of this name that runs `script`.
sub add {
    my ($self, $name, $script) = @_;
    my $path = $self->folder . "/$name";
    open my $file, '>', $path or croak "$path: $!";
    my ($shebang, $words) = split /\n/, $preamble, 2;
    print $file "$shebang\ntold=$self->{root}/told\ngates=$self->{root}/gates\n$words$script\n";
    close $file or croak "$path: $!";
    chmod 0755, $path;
    $self->{gates}{$_} //= _open_pipe("$self->{root}/gates/$_") for $script =~ /\bwait_at (\w+)/g;
    return;
}

# Lets so many through a gate, now or when they come.
sub open_gate {
    my ($self, $gate, $count) = @_;
    syswrite $self->{gates}{$gate} // croak("no gate $gate"), "\n" x ($count // 1);
    return;
}

sub _read {
    my ($line) = @_;
    my %told;
    @told{@columns} = split / /, $line;
    return \%told;
}

sub _matcher {
    my ($word, %fields) = @_;
    return sub {
        my ($told) = @_;
        return 0 if $told->{word} ne $word;
        for (keys %fields) { return 0 if $told->{$_} ne $fields{$_} }
        return 1;
    };
}

# What a task told with this word and these fields, as a hash of @columns.
sub wait_for {
    my ($self, $word, %fields) = @_;
    my %options = map { exists $fields{$_} ? ($_ => delete $fields{$_}) : () } qw(from count);
    my $what = join ' ', "a task that tells '$word'", map { "$_=$fields{$_}" } sort keys %fields;
    return $self->lines->wait_for($what, _matcher($word, %fields), read => \&_read, %options);
}

sub told {
    my ($self, $word, %fields) = @_;
    my $matches = _matcher($word, %fields);
    return grep { $matches->($_) } map { _read($_) } $self->lines->lines;
}

# The process that told something, to see that it is gone later.
sub process {
    my ($self, $told) = @_;
    return Pulse::Process->new($told->{pid});
}

1;
